"""What mkdocs is told beyond mkdocs.yml.

Links from the pages to files outside of docs/, such as CHANGELOG.md, are shown as their text: the site has no such
files. The script that search needs on pages opened as files comes from here, not from the network.
"""

import pathlib
import re
import shutil

SCRIPT = "assets/javascripts/iframe-worker.js"


def on_page_markdown(markdown, **_):
    return re.sub(r"\[([^\]]+)\]\(\.\./[^)\s]+\)", r"\1", markdown)


def on_post_page(output, page, **_):
    here = "../" * page.url.count("/")
    return output.replace("https://unpkg.com/iframe-worker/shim", f"{here}{SCRIPT}")


def on_post_build(config):
    source = pathlib.Path(__file__).with_name("iframe-worker.js")
    shutil.copy(source, pathlib.Path(config["site_dir"]) / SCRIPT)
