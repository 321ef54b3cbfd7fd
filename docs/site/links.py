"""Links from the pages to files outside of docs/, such as CHANGELOG.md, become links into the checkout's copy.

The site has no such files: a link to one is shown as its text.
"""

import re


def on_page_markdown(markdown, **_):
    return re.sub(r"\[([^\]]+)\]\(\.\./[^)\s]+\)", r"\1", markdown)
