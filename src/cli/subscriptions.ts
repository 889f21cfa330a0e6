import { EXIT, Failure } from "./failure.ts";
import type { Server } from "./server.ts";
import { ulid } from "./ulid.ts";

export interface Subscription {
  readonly id: string;
  readonly label: string;
  readonly webhook_url: string;
  readonly delivery_kind: string;
  readonly is_active: boolean;
}

export async function listSubscriptions(server: Server): Promise<Subscription[]> {
  const { data } = await server.ask<{ data: Subscription[] }>("/partner/webhooks");
  return data;
}

/** The one that is named, else the only one, else the immediate one of the two that a partner may have. */
export async function chooseSubscription(
  server: Server,
  named: string | undefined,
): Promise<Subscription> {
  if (named !== undefined) {
    return server.ask<Subscription>(`/partner/webhooks/${ulid(named)}`);
  }
  const all = await listSubscriptions(server);
  const chosen = all.find((one) => one.delivery_kind === "immediate") ?? all[0];
  if (chosen === undefined)
    throw new Failure(
      EXIT.failed,
      `There is no subscription yet: make one at ${server.root}/dashboard.`,
    );
  return chosen;
}

/** The current secret: the variable's, else the API's, which writes into the audit log that it was shown. */
export async function secretOf(
  env: Readonly<Record<string, string | undefined>>,
  server: Server,
  { id }: Pick<Subscription, "id">,
): Promise<string> {
  const given = env["WEBHOOK_SECRET"];
  if (given !== undefined) return given;
  const path = `/partner/webhooks/${id}/secret`;
  const { secret } = await server.ask<{ secret: string }>(path, { method: "POST" });
  return secret;
}
