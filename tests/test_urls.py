"""What is a URL, and what of one may be shown."""

import pytest

from streamkern.urls import is_url, shown

SECRETS = {
    "https://someone:hunter2@host/a.h5": "https://...@host/a.h5",
    "https://ghp_hunter2@host/a.h5": "https://...@host/a.h5",
    "https://someone:hun/ter2@host/a.h5": "https://...@host/a.h5",
    "https://host:8080/a.h5?X-Amz-Signature=hunter2": "https://host:8080/a.h5?...",
    "https://host/a.h5?hunter2": "https://host/a.h5?...",
    "https://host/a.h5#token=hunter2": "https://host/a.h5#...",
    "s3://key:hunter2@bucket/a.h5": "s3://...@bucket/a.h5",
    "sftp://someone:hunter2@host/x/a.h5": "sftp://...@host/x/a.h5",
    "abfs://someone:hunter2@account/a.h5": "abfs://...@account/a.h5",
    "s3://bucket/a.h5?sig=hunter2": "s3://bucket/a.h5?...",
    "simplecache::https://someone:hunter2@host/a.h5": "simplecache::https://...@host/a.h5",
    "zip://a.h5::https://host/a.zip?sig=hunter2": "zip://a.h5::https://host/a.zip?...",
}
OPEN = [
    "s3://bucket/folder/a.h5",
    "s3://bucket/train-?.h5",
    "s3://bucket/date=202?/a@b.h5",
    "gs://bucket/[ab]*.h5",
    "https://host:8080/@someone/a.h5",
    "abfs://container@account.dfs.core.windows.net/a.h5",
    "simplecache::s3://bucket/a.h5",
    "memory://a.h5",
]
PATHS = ["a.h5", "/data/a.h5", "./a:b.h5", "a::b.h5", "C:\\a.h5", "x/s3://a", "", "a@b?x=1"]


@pytest.mark.parametrize("url", SECRETS)
def test_secrets_in_a_url_are_not_shown(url):
    assert is_url(url)
    assert "hunter2" not in shown(url)
    assert shown(url) == SECRETS[url]


@pytest.mark.parametrize("url", SECRETS)
def test_what_is_shown_is_shown_the_same_again(url):
    assert shown(shown(url)) == shown(url)


@pytest.mark.parametrize("url", OPEN)
def test_a_url_without_secrets_is_shown_as_it_is(url):
    assert is_url(url)
    assert shown(url) == url


@pytest.mark.parametrize("path", PATHS)
def test_a_path_is_no_url(path):
    assert not is_url(path)
    assert shown(path) == path
