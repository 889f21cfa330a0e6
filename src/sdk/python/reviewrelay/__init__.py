"""Client of the ReviewRelay API, and verification of its webhooks."""

from ._client import Pages, ReviewRelay
from ._errors import ApiError
from ._oauth import OAuthToken, OAuthTokens
from ._verify import Event, MinimalEvent, SignatureError, verify, verify_minimal

__all__ = [
    "ApiError",
    "Event",
    "MinimalEvent",
    "OAuthToken",
    "OAuthTokens",
    "Pages",
    "ReviewRelay",
    "SignatureError",
    "verify",
    "verify_minimal",
]
