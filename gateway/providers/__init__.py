"""Wire dialects: where the parts of a body stand, what is sealed, how answers stream, what a refusal looks like.

One file a dialect, each a table over the generic walk; `hosts` says who speaks what, `registry` chooses. A
dialect that does not know a part carries it through, and the part is scanned as everything else.
"""
