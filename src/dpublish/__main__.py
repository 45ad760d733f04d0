"""Run the command with `python -m dpublish`."""

from dpublish.cli.main import run

if __name__ == "__main__":
    run()
