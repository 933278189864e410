"""Detection: rules as data, run by a multi-pattern engine, over texts and their decoded views."""
