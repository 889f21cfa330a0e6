// Stands for the types of the API in the sources. The build of the package replaces dist/api.d.ts by the types that
// openapi-typescript writes from the OpenAPI document.

/** What `JSON.parse` returns. */
type Json = ReturnType<typeof JSON.parse>;

interface AnyOperation {
  parameters: {
    query?: Readonly<Record<string, string | number | boolean | undefined>>;
    header?: { "Idempotency-Key"?: string };
    path?: Readonly<Record<string, string | number>>;
  };
  requestBody?: { content: { "application/json": Json } };
  responses: { 200: { content: { "application/json": Json } } };
}

export type paths = Record<
  `/api/v1/${string}`,
  Record<"get" | "put" | "post" | "patch" | "delete", AnyOperation>
>;

/** The fields that all events have. */
export interface MinimalEvent {
  event: string;
  event_id: string;
  occurred_at: string;
  partner: { id: number };
}

export interface Event extends MinimalEvent {
  delivered_at: string;
}
