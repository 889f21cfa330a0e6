import { publicAccess } from "../auth/guard.ts";
import { route, type Route } from "../http/route.ts";
import * as actions from "./actions.ts";
import { providerEventsBody } from "./input.ts";
import { AcceptedAnswer, BODY_LIMIT } from "./model.ts";
import { createProfanityFinder } from "./profanity.ts";

/** decisions.md 6: what review sites' pullers report. */
export function providerRoutes(deps: actions.ProviderDeps): Route[] {
  const withProfanity = { ...deps, profanity: createProfanityFinder() };
  return [
    route({
      method: "POST",
      path: "/providers/:provider/events",
      summary: "Report reviews, postings and connections of a review site",
      access: publicAccess,
      body: providerEventsBody,
      bodyLimit: BODY_LIMIT,
      answers: { 200: AcceptedAnswer },
      problems: ["invalid_signature"],
      verify: ({ call, params, raw }) =>
        actions.verifySignature(deps, params["provider"] ?? "", {
          raw,
          signature: call.headers.get("x-provider-signature"),
        }),
      handle: ({ params, body }) =>
        actions.takeEvents(withProfanity, params["provider"] ?? "", body),
    }),
  ];
}
