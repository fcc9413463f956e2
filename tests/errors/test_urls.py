"""What is a URL, and what of one may be shown."""

import pytest

from streamkern.errors import DataError, ParameterError, first_line
from streamkern.errors.urls import is_url, shown

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
def test_secrets_in_a_url_are_not_shown_and_what_is_shown_is_shown_the_same_again(url):
    assert is_url(url)
    assert shown(url) == shown(shown(url)) == SECRETS[url]


@pytest.mark.parametrize("text", [*OPEN, *PATHS])
def test_a_path_is_no_url_and_without_secrets_both_are_shown_as_they_are(text):
    assert is_url(text) == (text in OPEN)
    assert shown(text) == text


SENTENCES = ["{} is no file.", "a URL such as {!r}, not {!r}; correct it", "a,{},b", "({})"]


@pytest.mark.parametrize("sentence", SENTENCES)
@pytest.mark.parametrize("url", [*SECRETS, "https://someone:hun:/ter2@host/a.h5"])
@pytest.mark.parametrize("form", [str, lambda url: url.replace("://", ":/")])
def test_an_error_tells_no_secret_of_a_url_whatever_words_are_around_it(sentence, url, form):
    text = sentence.format(form(url), form(url))
    error = DataError(text)
    for told in (str(error), repr(error), f"{error.args}", first_line(ValueError(text))):
        assert "ter2" not in told
        assert "hun" not in told
    assert str(DataError(str(error))) == str(error)


@pytest.mark.parametrize("text", [*OPEN, *PATHS, "C:/a@b", "rows.h5:/x/y@z", "at 10:00:00/day"])
def test_an_error_without_secrets_is_as_it_was_written(text):
    for sentence in SENTENCES:
        written = sentence.format(text, text)
        assert str(ParameterError(written)) == written


def test_a_long_text_does_not_hold_an_error_up():
    for part in ("a:", "a-", "a:/", "a::", "@:/"):
        assert len(str(DataError(f"https://{part * 20_000}:/"))) > 0
