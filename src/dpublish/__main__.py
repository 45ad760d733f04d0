"""Run the command with `python -m dpublish`."""

from dpublish.cli import main

if __name__ == "__main__":
    main()
