import type { Subscription } from "./model.ts";
import type { ApiClient } from "../../ui/api-client.ts";
import { changesOf, createBody, type Draft } from "./draft.ts";

export function createSubscription(api: ApiClient, draft: Draft) {
  type Request = Parameters<typeof api.call<"POST", "/partner/webhooks">>[2];
  // The events and hours in it were picked from the catalog; the server has the last word.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  const body = createBody(draft) as Request["body"];
  return api.call("POST", "/partner/webhooks", { body });
}

export function updateSubscription(api: ApiClient, draft: Draft, current: Subscription) {
  type Request = Parameters<typeof api.call<"PATCH", "/partner/webhooks/:id">>[2];
  // As in a creation.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  const body = changesOf(draft, current) as Request["body"];
  return api.call("PATCH", "/partner/webhooks/:id", { params: { id: current.id }, body });
}
