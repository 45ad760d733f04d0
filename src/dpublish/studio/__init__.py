"""The studio: an owner's desk in the browser, on this computer.

The pages call the same functions as the command line and Python; nothing is decided here.
`serve` starts it, `make_app` builds it for tests.
"""
