"""The Python of docs/connect-hive.md, run as it stands there."""

import pathlib
import re

from conftest import PORT

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "connect-hive.md"


def test_the_page_says_what_works(cursor, capsys):
    cursor.execute("DROP TABLE IF EXISTS ad_report")
    cursor.execute("CREATE TABLE ad_report (day date, account_id bigint, impressions bigint)")
    cursor.execute("INSERT INTO ad_report VALUES ('2025-12-01', 17, 5), ('2025-12-02', 17, 7), ('2025-12-02', 18, 1)")
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(blocks) == 4
    for block in blocks:
        exec(compile(block.replace("10000", str(PORT)), str(PAGE), "exec"), {})
        said = capsys.readouterr().out
        assert said.replace("datetime.date(2025, 12, 1)", "'2025-12-01'").startswith("[('2025-12-01', 5), "), said
        assert said.endswith(", 7)]\n"), said
    cursor.execute("DROP TABLE ad_report")
