import { answerOf, type ApiClient, pageAt } from "../../api/client.ts";
import { recordOf } from "../../api/records.ts";
import { useApi } from "../../session/session.tsx";
import { listOptions, type RowOf, useRefresh } from "../../ui/pages.ts";

export const planListOptions = (api: ApiClient) =>
  listOptions(["plans", "list"], (cursor) =>
    answerOf(api.admin.plans.get({ query: pageAt(cursor) })),
  );

export type Plan = RowOf<typeof planListOptions>;

export interface PlanDraft {
  readonly name: string;
  readonly features: readonly string[];
}

const bodyOf = ({ name, features }: PlanDraft) => ({ name: name.trim(), features: [...features] });

/** Requests that create, change and delete plans. Each request invalidates the cached plans. */
export function usePlanActions() {
  const api = useApi();
  const { inBackground, andRead } = useRefresh(["plans"]);
  return {
    create: (draft: PlanDraft) => inBackground(answerOf(api.admin.plans.post(bodyOf(draft)))),
    change: (id: number, draft: PlanDraft) =>
      inBackground(recordOf<Plan>(api, "plans", id).change(bodyOf(draft))),
    remove: (id: number) => andRead(recordOf(api, "plans", id).remove()),
  };
}
