"""`python -m gateway.cli`: the same command where no script is installed."""

from gateway.cli.main import main

if __name__ == "__main__":
    main()
