"""GitHub's command line through the proxy. It has no base URL: `standpipe run` gives it a socket."""

import json
from urllib.request import urlopen


def gh(tap, *words):
    done = tap.run("gh", *words, GH_TOKEN="k", GH_PROMPT_DISABLED="1")
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_rest_graphql_and_pages_go_through_the_tap(github):
    provider, tap = github
    assert json.loads(gh(tap, "api", "user"))["login"] == "octo"
    viewer = gh(tap, "api", "graphql", "-f", "query={viewer{login}}", "-q", ".data.viewer.login")
    assert viewer == "octo\n"
    pages = gh(tap, "api", "--paginate", "repos/octo/tap/issues", "-q", ".[].number")
    assert pages.split() == ["1", "2", "3"]
    paths = [call["path"] for call in provider.log()]
    assert paths == ["/user", "/graphql", *["/repos/octo/tap/issues"] * 3]


def test_an_error_is_gh_s_own(github):
    _, tap = github
    done = tap.run("gh", "api", "user", "-H", "x-fail: 404", GH_TOKEN="k")
    assert done.returncode == 1 and "Not Found (HTTP 404)" in done.stderr, done.stderr


def test_calls_count_as_the_agent_of_run(github):
    _, tap = github
    gh(tap, "api", "user")
    with urlopen(f"{tap.url}/v1/proxied") as reply:
        agents = [call["agent"] for call in json.load(reply)["recent"]]
    assert agents == ["nightly"], "gh itself sends no name"
