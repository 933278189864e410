"""Where evidence, sealed values and conversations are kept: SQLite through apsw, and twins in memory.

sqlite         the evidence store: one writer thread, group commit, full sync
writer         the queue in front of the writer, its bounds and its failures
log            what one transaction does: parts, records, an entry, tree nodes, the index row
service        the evidence writer: these stores, served to other processes through a socket
remote         the same ports where another process owns the stores
packing        what the two say to each other
reader         everything that is read back: rows, records, proofs; also while another process writes
memory         the twins without a disk
schema         tables and migrations
compression    stored texts made small, with a dictionary of typical evidence
layout         records as lists of parts that are stored once
published      the last checkpoint, in a file of its own outside the database
lock           one gateway a state folder
retention      what is old is let go of; the log keeps its hashes
audit          `receipts verify`: feeds a stored log to gateway.evidence.verify
export         self-contained pieces of the log, for `receipts export`
anchor         the last checkpoint copied elsewhere
upkeep         `store check|compact|backup`
forgotten      how a running gateway learns that values were forgotten
vault          sealed values and their placeholders
sealing        how a value is sealed
keys           the key folder
conversations  what conversations have sent before
"""
