import { Elysia } from "elysia";

import type { KeyRing } from "../auth/key-ring.ts";
import { authorizationServerMetadata } from "./metadata.ts";

/** The public documents that OAuth clients and resource servers configure themselves with (RFC 8414, RFC 7517). */
export function wellKnown(keys: Pick<KeyRing, "jwks">, serverRoot: string) {
  return new Elysia({ prefix: "/.well-known", tags: ["Documents"] })
    .get("/jwks.json", () => keys.jwks(), {
      detail: {
        operationId: "getKeys",
        summary: "Get the keys that tokens are signed with",
        description: "RFC 7517.",
      },
    })
    .get("/oauth-authorization-server", () => authorizationServerMetadata(serverRoot), {
      detail: {
        operationId: "getOAuthMetadata",
        summary: "Get what OAuth clients configure themselves with",
        description: "RFC 8414.",
      },
    });
}
