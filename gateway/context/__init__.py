"""What a request is made of, without knowing any provider.

Block       a pointed part of a JSON body that is judged as one object (a message part, a tool call, a tool result)
Leaf        one string (or number, or member name) inside a block, with its role: may it be edited, is it sealed
Object      a block with its digest, size and leaves: the unit of decision and of evidence
Finding     something a detector saw in one leaf, in characters of the leaf's text
Edit        a replacement of one span of one leaf
Decision    a disposition with the reasons, transformations and rules that made it
View        a decoded or folded form of a text with a map back to the original
"""
