import { maxValues } from "../../src/http/body.ts";
import { MAX_PARAMETERS } from "../../src/http/text.ts";
import { fieldsOf } from "../../src/lib/fields.ts";
import { operationsIn, referred } from "./description.ts";

/* The most expensive inputs for each route, generated from the OpenAPI document of the API. */

/** The bytes of a request head that one long query or header may use; the other headers need the rest. */
const HEAD_BYTES = 12 * 1024;
const BODY_LIMIT = 64 * 1024;

export interface WorstRequest {
  /** The method and path, such as `POST /api/v1/login`. */
  readonly route: string;
  readonly shape: string;
  /** Builds a request with this bearer token, if any, whose expensive part has `bytes` bytes, or as many as it may have. */
  make(bytes: number, token?: string): { readonly path: string; readonly init: RequestInit };
}

/** The parts of an operation that the shapes use. */
interface Operation {
  readonly method: string;
  readonly path: string;
  readonly parameters: readonly string[];
  readonly fields: readonly string[];
  readonly type: "application/json" | "application/x-www-form-urlencoded";
}

type Shape = (bytes: number, operation: Operation) => string;

/** Builds a shape that repeats one piece. */
const repeat =
  (piece: string): Shape =>
  (bytes) =>
    piece.repeat(Math.ceil(bytes / piece.length)).slice(0, bytes);

/** Joins up to `most` different pieces, until they have `bytes` bytes. */
function distinct(
  bytes: number,
  most: number,
  [piece, joint]: [(i: number) => string, string],
): string {
  const pieces: string[] = [];
  for (let size = 0; size < bytes && pieces.length < most;) {
    const one = piece(pieces.length);
    pieces.push(one);
    size += one.length + joint.length;
  }
  return pieces.join(joint);
}

const padded = (bytes: number, count: number): string =>
  "x".repeat(Math.max(1, Math.floor(bytes / count) - 8));
const most = maxValues(BODY_LIMIT) - 8;

const BODIES: Readonly<Record<string, Shape>> = {
  "plain text": (bytes) => JSON.stringify({ a: "x".repeat(bytes - 8) }),
  "lists in lists": repeat("["),
  "lists in an unknown field": (bytes) =>
    `{"a":${"[".repeat(bytes / 2 - 4)}${"]".repeat(bytes / 2 - 4)}}`,
  "unknown fields": (bytes) =>
    `{${distinct(bytes - 16, Number.POSITIVE_INFINITY, [(i) => `"a${i}":1`, ","])}}`,
  "unknown fields up to the bound": (bytes) =>
    `{${distinct(bytes - 64, most, [(i) => `"${i}${padded(bytes, most)}":1`, ","])}}`,
  "lists of the wrong elements in each field": (bytes, { fields }) => {
    const names = fields.length === 0 ? ["a"] : fields;
    const each = Math.min(most / names.length / 2, bytes / names.length / 3);
    const list = Array.from({ length: Math.max(1, Math.floor(each) - 8) }, () => ({}));
    return JSON.stringify(Object.fromEntries(names.map((name) => [name, list])));
  },
  "long texts in each field": (bytes, { fields }) => {
    const names = fields.length === 0 ? ["a"] : fields;
    const text = "é ".repeat(Math.max(1, bytes / names.length / 3 - 16));
    return JSON.stringify(Object.fromEntries(names.map((name) => [name, text])));
  },
  escapes: (bytes) => JSON.stringify({ a: "\\".repeat(bytes / 2 - 8) }),
};

const FORMS: Readonly<Record<string, Shape>> = {
  "distinct names": (bytes) => distinct(bytes, Number.POSITIVE_INFINITY, [(i) => `a${i}=`, "&"]),
  "distinct names up to the bound": (bytes) =>
    distinct(bytes, MAX_PARAMETERS, [(i) => `a${i}=${padded(bytes, MAX_PARAMETERS)}`, "&"]),
  "one repeated name": repeat("a=1&"),
  escapes: repeat("%61a"),
  "long values": (bytes, { parameters, fields }) => {
    const names = [...parameters, ...fields];
    return names
      .map((name) => `${name}=${repeat("+a@")(bytes / names.length - name.length - 2, NONE)}`)
      .join("&");
  },
};

const HEADERS: Readonly<Record<string, Shape>> = {
  Authorization: (bytes) =>
    `Bearer ${["a", "b", "c"].map((one) => one.repeat(bytes / 3 - 4)).join(".")}`,
  Cookie: repeat("a=b; "),
  "X-Forwarded-For": repeat("::1, "),
  "Accept-Encoding": repeat("a;q=0,"),
};

const NONE: Operation = {
  method: "",
  path: "",
  parameters: [],
  fields: [],
  type: "application/json",
};

/** Builds a request for each route and each shape of its query, headers and body. */
export function worstRequests(description: unknown): WorstRequest[] {
  return operationsOf(description).flatMap((operation) => {
    const route = `${operation.method} ${operation.path}`;
    const path = operation.path.replaceAll(/\{\w+\}/g, "1");
    const request = (
      token: string | undefined,
      headers: Record<string, string>,
      more: RequestInit = {},
    ): RequestInit => ({
      method: operation.method,
      redirect: "manual",
      headers: { ...(token !== undefined && { Authorization: `Bearer ${token}` }), ...headers },
      ...more,
    });
    const inHead = (bytes: number) => Math.min(bytes, HEAD_BYTES);
    const queries = Object.entries(FORMS).map(([shape, make]): WorstRequest => ({
      route,
      shape: `a query of ${shape}`,
      make: (bytes, token) => ({
        path: `${path}?${make(inHead(bytes), operation)}`,
        init: request(token, {}),
      }),
    }));
    const headers = Object.entries(HEADERS).map(([name, make]): WorstRequest => ({
      route,
      shape: `a long ${name}`,
      make: (bytes, token) => ({
        path,
        init: request(token, { [name]: make(inHead(bytes), operation) }),
      }),
    }));
    if (operation.method === "GET") return [...queries, ...headers];
    const isForm = operation.type !== "application/json";
    const bodies = Object.entries(isForm ? FORMS : BODIES).map(([shape, make]): WorstRequest => ({
      route,
      shape: `a body of ${shape}`,
      make: (bytes, token) => ({
        path,
        init: request(token, { "Content-Type": operation.type }, { body: make(bytes, operation) }),
      }),
    }));
    return [...bodies, ...queries.slice(0, 1), ...headers.slice(0, 1)];
  });
}

function operationsOf(description: unknown): Operation[] {
  return operationsIn(description).map(({ method, path, parameters, content }): Operation => {
    const [type = "application/json", media] = Object.entries(content)[0] ?? [];
    const schema = referred(description, fieldsOf(media)["schema"]);
    const isForm = type === "application/x-www-form-urlencoded";
    return {
      method,
      path,
      parameters: parameters.flatMap((one) => (one.in === "query" ? [one.name] : [])),
      fields: Object.keys(fieldsOf(schema)["properties"] ?? {}),
      type: isForm ? type : "application/json",
    };
  });
}
