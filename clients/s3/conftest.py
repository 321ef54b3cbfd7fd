"""An S3 server, buckets in it, and Stoa on warehouses there."""

import os
import uuid

import boto3
import pytest
from botocore.config import Config

from stores import ACCESS_KEY, SECRET_KEY, Gateway, Proxy
from warehouse import Warehouse


@pytest.fixture(scope="session")
def gateway(tmp_path_factory):
    """A versitygw on an empty directory."""
    gateway = Gateway(os.environ["STOA_S3_GATEWAY"], tmp_path_factory.mktemp("gateway"))
    yield gateway
    gateway.stop()


@pytest.fixture(scope="session")
def s3(gateway):
    """boto3's client of the gateway."""
    return boto3.client(
        "s3",
        endpoint_url=gateway.url,
        aws_access_key_id=ACCESS_KEY,
        aws_secret_access_key=SECRET_KEY,
        region_name="us-east-1",
        config=Config(s3={"addressing_style": "path"}),
    )


@pytest.fixture
def bucket(s3):
    name = f"stoa-{uuid.uuid4().hex[:12]}"
    s3.create_bucket(Bucket=name)
    return name


@pytest.fixture
def warehouse(gateway, bucket, tmp_path):
    """A warehouse of its own, in a prefix with letters that need care."""
    warehouse = Warehouse(f"s3://{bucket}/ware house/ü%20", gateway.url, tmp_path)
    yield warehouse
    warehouse.end()


@pytest.fixture
def proxy(gateway, tmp_path):
    """Makes proxies before the gateway; they end with the test."""
    proxies = []

    def make(*flags, port=0):
        proxies.append(Proxy(os.environ["STOA_BIN"], gateway.url, *flags, port=port))
        return proxies[-1]

    yield make
    for proxy in proxies:
        proxy.stop()
