import { answerOf, type ApiClient } from "./client.ts";

type Kind = "partners" | "accounts" | "plans" | "providers" | "stores" | "store-review-sites";
type Call<T> = Parameters<typeof answerOf<T>>[0];

interface RecordRoutes {
  get(): Call<unknown>;
  patch(body: object): Call<unknown>;
  delete(): Call<unknown>;
}

/**
 * Requests for one record of master data (contract 10.6). The typed client lacks these routes, because the server
 * defines them for all kinds in a loop.
 */
export function recordOf<Row>(api: ApiClient, kind: Kind, id: number) {
  // The assertions are safe because contract 10.6 has these routes for each kind, and their answers are those of the
  // list.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  const admin = api.admin as unknown as Record<Kind, (of: { id: number }) => RecordRoutes>;
  const routes = admin[kind]({ id });
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  const read = async (call: Call<unknown>) => (await answerOf(call)) as Row;
  return {
    read: () => read(routes.get()),
    change: (body: object) => read(routes.patch(body)),
    remove: () => answerOf(routes.delete()),
  };
}
