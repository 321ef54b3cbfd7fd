"""What users read when the store cannot be used, and that no secret is among it."""

import os
import subprocess

import pytest

from stores import SECRET_KEY, free_port


def refusal(warehouse, **changes):
    done = warehouse.attempt("table", "list", **changes)
    assert done.returncode != 0
    text = done.stderr + done.stdout
    assert SECRET_KEY not in text and "wrong-secret" not in text
    return text


def test_no_bucket(warehouse):
    warehouse.url = "s3://no-such-bucket/x"
    assert "there is no such bucket" in refusal(warehouse)


def test_a_wrong_secret(warehouse):
    assert "the secret key is wrong" in refusal(warehouse, AWS_SECRET_ACCESS_KEY="wrong-secret")


def test_an_unknown_key(warehouse):
    text = refusal(warehouse, AWS_ACCESS_KEY_ID="nobody")
    assert "does not know the access key" in text and "AWS_ACCESS_KEY_ID" in text


def test_nobody_at_the_endpoint(warehouse):
    warehouse.endpoint = f"http://127.0.0.1:{free_port()}"
    text = refusal(warehouse)
    assert "nobody listens at the store's address" in text and "s3_endpoint" in text


def test_plain_http_elsewhere(warehouse):
    warehouse.endpoint = "http://s3.example.com"
    assert "s3_allow_http" in refusal(warehouse)


def test_half_of_the_keys(warehouse):
    assert "AWS_SECRET_ACCESS_KEY is not" in refusal(warehouse, AWS_SECRET_ACCESS_KEY=None)


def test_a_profile_that_is_not_there(warehouse):
    keys = {"AWS_ACCESS_KEY_ID": None, "AWS_SECRET_ACCESS_KEY": None}
    assert '"nowhere"' in refusal(warehouse, AWS_PROFILE="nowhere", **keys)


@pytest.mark.parametrize("section", ["[reports]", "[profile reports]"])
def test_a_profile_is_used(warehouse, tmp_path, section):
    name = "credentials" if section == "[reports]" else "config"
    file = tmp_path / name
    file.write_text(f"{section}\naws_access_key_id = stoa\naws_secret_access_key = {SECRET_KEY}\n")
    variable = {"credentials": "AWS_SHARED_CREDENTIALS_FILE", "config": "AWS_CONFIG_FILE"}[name]
    keys = {"AWS_ACCESS_KEY_ID": None, "AWS_SECRET_ACCESS_KEY": None}
    warehouse.run("table", "list", AWS_PROFILE="reports", **{variable: str(file)}, **keys)


def test_settings_of_the_file_are_used_and_not_shown(warehouse, tmp_path):
    file = tmp_path / "stoa.toml"
    keys = f"access_key_id = 'stoa'\nsecret_access_key = '{SECRET_KEY}'"
    file.write_text(f"[s3]\nendpoint = '{warehouse.endpoint}'\n{keys}\n")
    nothing = {"AWS_ACCESS_KEY_ID": None, "AWS_SECRET_ACCESS_KEY": None, "AWS_ENDPOINT_URL_S3": None}
    warehouse.run("table", "list", "--config", str(file), **nothing)
    for flags in ([], ["--json"]):
        command = [os.environ["STOA_BIN"], "config", "--config", str(file), *flags]
        shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        assert SECRET_KEY not in shown and "s3_secret_access_key" in shown
