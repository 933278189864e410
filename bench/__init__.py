"""What a request costs.

`python -m bench [SUITE ...]` runs the suites and prints their tables; `--json FILE` keeps them.

Every figure is a median over rounds in one run, and comparisons are ratios within that run: machines differ, and so
do their neighbours.
"""
