"""Say on a page what the library says to people at a shell: settings and pages, not options."""

import re

_COMMANDS = (
    (r"`?dpublish rehearse`? (?=measures|shows)", "a rehearsal "),
    (r"`?dpublish plan`? (?=states|shows)", "the plan "),
    (r"`?dpublish choose-k`? (?=tries)", "its page Choose k "),
    (r": `?dpublish schema bounds`?", " on the page of the column"),
    (r"with `dpublish ledger cap`", "on the page of the dataset"),
    (r"`dpublish ledger cap` changes", "the page of the dataset changes"),
    (r"dpublish ledger show LEDGER tells", "the page of the dataset tells"),
    (r"go on with `dpublish stream next`", "go on with its page"),
    (r"repeat `dpublish stream start`", "start the stream again"),
    (r"; see: dpublish methods \S+", ""),
    (r" \(dpublish [a-z -]+\)", ""),
    (r"say --new-labels \(allow_new_labels=True\)", "tick that the label may differ"),
    (r"begin again with --fresh", "forget the answers and begin again"),
    (r" \(--[a-z][a-z-]*\)", ""),
    (r"(--[a-z][a-z-]*(?: [^\s()]+)?) \([a-z_]+=[^()]*\)", r"\1"),  # the same in Python
)
_OPTION = re.compile(r"(?<![\w'\"-])--([a-z][a-z-]*)")


def for_pages(text: str) -> str:
    """Rewrite commands and options as the pages and settings that stand for them.

    >>> for_pages("the error depends on the number of records; name it (--rows)")
    'the error depends on the number of records; name it'
    >>> for_pages("add --combine weighted; dpublish rehearse measures it before you spend")
    'add combine weighted; a rehearsal measures it before you spend'
    """
    for command, words in _COMMANDS:
        text = re.sub(command, words, text)
    return _OPTION.sub(lambda found: found[1].replace("-", " "), text)
