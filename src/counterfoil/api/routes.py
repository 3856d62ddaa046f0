"""Which HTTP route is which rpc. Fields of the path and of the query go into the request beside those of the body."""

from __future__ import annotations

import msgspec


class Route(msgspec.Struct, frozen=True):
    """One route: method, path with `{field}`s of the request, and the rpc."""

    method: str
    path: str
    rpc: str


ROUTES: tuple[Route, ...] = (
    Route("POST", "/v1/sessions", "Sessions.Create"),
    Route("GET", "/v1/sessions", "Sessions.List"),
    Route("GET", "/v1/sessions/{session_id}", "Sessions.Get"),
    Route("DELETE", "/v1/sessions/{session_id}", "Sessions.Delete"),
    Route("POST", "/v1/sessions/{session_id}/rename", "Sessions.Rename"),
    Route("POST", "/v1/sessions/{session_id}/fork", "Sessions.Fork"),
    Route("POST", "/v1/sessions/{session_id}/mode", "Sessions.SetMode"),
    Route("POST", "/v1/sessions/{session_id}/model", "Sessions.SetModel"),
    Route("POST", "/v1/sessions/{session_id}/compact", "Sessions.Compact"),
    Route("POST", "/v1/sessions/{session_id}/prompt", "Runs.Prompt"),
    Route("POST", "/v1/sessions/{session_id}/resume", "Runs.Resume"),
    Route("POST", "/v1/sessions/{session_id}/steer", "Runs.Steer"),
    Route("POST", "/v1/sessions/{session_id}/cancel", "Runs.Cancel"),
    Route("POST", "/v1/sessions/{session_id}/calls/{tool_call_id}/cancel", "Runs.CancelCall"),
    Route("GET", "/v1/asks", "Approvals.ListAsks"),
    Route("GET", "/v1/sessions/{session_id}/asks", "Approvals.ListAsks"),
    Route("GET", "/v1/asks/{ask_id}", "Approvals.GetAsk"),
    Route("POST", "/v1/asks/{ask_id}/answer", "Approvals.Answer"),
    Route("GET", "/v1/sessions/{session_id}/grants", "Approvals.ListGrants"),
    Route("POST", "/v1/sessions/{session_id}/grants/revoke", "Approvals.RevokeGrant"),
    Route("GET", "/v1/reviews/status", "Reviews.GetStatus"),
    Route("GET", "/v1/sessions/{session_id}/reviews", "Reviews.ListReviews"),
    Route("GET", "/v1/sessions/{session_id}/reviews/{review_id}/detail", "Reviews.GetDetail"),
    Route("POST", "/v1/sessions/{session_id}/reviews/{review_id}/acknowledge", "Reviews.Acknowledge"),
    Route("GET", "/v1/sessions/{session_id}/transcript", "Transcripts.GetTranscript"),
    Route("GET", "/v1/sessions/{session_id}/calls/{tool_call_id}", "Transcripts.InspectCall"),
    Route("GET", "/v1/sessions/{session_id}/verify", "Transcripts.VerifyLog"),
    Route("GET", "/v1/info", "Server.GetInfo"),
)
