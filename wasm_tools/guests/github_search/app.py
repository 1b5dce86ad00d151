"""github_search: repositories and issues of GitHub, as a component of the world portside:tool/sandboxed-tool."""

import json
from urllib.parse import urlencode

from componentize_py_types import Err
from wit_world import exports
from wit_world.exports import tool
from wit_world.imports import host

SCHEMA = {
    "type": "object",
    "properties": {
        "kind": {"type": "string", "enum": ["repositories", "issues"], "description": "Issues include pull requests"},
        "query": {
            "type": "string",
            "minLength": 1,
            "maxLength": 256,
            "description": "As in GitHub's search box: words and qualifiers such as repo:owner/name is:open language:c",
        },
        "limit": {"type": "integer", "minimum": 1, "maximum": 50, "default": 10, "description": "Results at most"},
        "api": {
            "type": "string",
            "pattern": "^https?://[^?#]+[^/?#]$",
            "default": "https://api.github.com",
            "description": "The API of a GitHub Enterprise server, if the operator has granted it",
        },
    },
    "required": ["kind", "query"],
    "additionalProperties": False,
}
DESCRIPTION = (
    "Searches GitHub for repositories, or for issues and pull requests. Answers {total, items}, the best match "
    "first: name, url, description, stars, language; or repository, number, title, state, url, author, updated."
)


class Failed(Exception):
    """There is no result; the message says why."""


class Tool(exports.Tool):
    """The exported interface."""

    def execute(self, req: tool.Request) -> tool.Response:
        """Search; what goes wrong on the way is an error in words."""
        try:
            return tool.Response(output=json.dumps(search(json.loads(req.params)), ensure_ascii=False), error=None)
        except Failed as failure:
            return tool.Response(output=None, error=str(failure))

    def schema(self) -> str:
        """The parameters."""
        return json.dumps(SCHEMA)

    def description(self) -> str:
        """For the model."""
        return DESCRIPTION


def search(params):
    """The total and the best matches."""
    limit = params.get("limit", 10)
    query = urlencode({"q": params["query"], "per_page": limit})
    url = f"{params.get('api', 'https://api.github.com')}/search/{params['kind']}?{query}"
    headers = [("Accept", "application/vnd.github+json"), ("User-Agent", "portside-github-search/1")]
    try:
        response = host.http_request("GET", url, headers, None, None)
    except Err as refusal:
        raise Failed(refusal.value) from None
    try:
        answer = json.loads(response.body)
    except ValueError:
        raise Failed(f"GitHub answered {response.status} and no JSON") from None
    if response.status != 200:
        raise Failed(explained(response, answer))
    shape = repository if params["kind"] == "repositories" else issue
    found = {"total": answer["total_count"], "items": [shape(item) for item in answer["items"][:limit]]}
    return {**found, "incomplete": True} if answer.get("incomplete_results") else found


def explained(response, answer):
    """A refusal of GitHub's, with what to do where that is known."""
    said = answer.get("message", "no reason given") if isinstance(answer, dict) else "no reason given"
    headers = dict(response.headers)
    if response.status in {403, 429} and headers.get("x-ratelimit-remaining") == "0":
        return f"GitHub's rate limit is used up; try later: {said}"
    if response.status == 422:
        return f"GitHub does not understand the query: {said}"
    return f"GitHub answered {response.status}: {said}"


def repository(item):
    """What matters of a repository."""
    return {
        "name": item["full_name"],
        "url": item["html_url"],
        "description": item["description"],
        "stars": item["stargazers_count"],
        "language": item["language"],
    }


def issue(item):
    """What matters of an issue or pull request."""
    return {
        "repository": "/".join(item["repository_url"].rsplit("/", 2)[1:]),
        "number": item["number"],
        "title": item["title"],
        "state": item["state"],
        "pull_request": "pull_request" in item,
        "url": item["html_url"],
        "author": (item["user"] or {}).get("login"),
        "updated": item["updated_at"],
    }
