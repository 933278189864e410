"""Evidence that a third party can check: log entries, their Merkle tree, checkpoints, proofs, lineages.

merkle      the RFC 6962 tree: append, roots, inclusion and consistency proofs
sign        Ed25519 keys, C2SP key ids, DSSE envelopes, the hand-over from one key to the next
checkpoint  C2SP tlog-checkpoint bodies in signed notes
entry       one log entry: canonical JSON, chained to the entry before it, a leaf of the tree
verify      whether a log, or an exported piece of it, holds; names the first bad entry
disclosure  one decision shown and proven without the others
timestamp   what is asked of a time-stamping authority (RFC 3161), and its answer
statement   receipts as in-toto statements in DSSE envelopes
bundle      the lines of an exported piece, and their verification with the public key alone
lineage     the life of a request: observations, what they prove, and the one lineage at its end

Everything here is pure: time, keys and stored rows come in as arguments.
"""
