"""The Python of docs/flight-sql.md, run as it stands there."""

import pathlib
import re

from conftest import PORT

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "flight-sql.md"


def test_the_page_says_what_works(cursor, capsys):
    cursor.execute("DROP TABLE IF EXISTS clicks")
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(blocks) == 2
    for block in blocks:
        exec(compile(block.replace("15003", str(PORT)), str(PAGE), "exec"), {})
    said = capsys.readouterr().out
    assert said == "[{'day': datetime.date(2025, 12, 1), 'clicks': 3}]\nb'{\"rows\": 1}'\n"
    cursor.execute("SELECT sum(clicks) FROM clicks")
    assert cursor.fetchone() == (15,)
    cursor.execute("DROP TABLE clicks")
