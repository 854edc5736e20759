"""Run the command line with `python -m probdice`."""

from probdice.cli import main

if __name__ == "__main__":
    main()
