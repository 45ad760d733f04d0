"""Text that may come from a stranger's file, made safe to print."""


def printable(text: str) -> str:
    r"""Write out what would move the cursor, turn the line around or not be seen.

    >>> printable("age\x1b[2J\u202e"), printable("two\nlines")
    ('age\\x1b[2J\\u202e', 'two\\nlines')
    """
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
