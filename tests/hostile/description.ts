import { fieldsOf } from "../../src/lib/fields.ts";

/** A parameter of an operation, declared there or in the components of the document. */
export interface DescribedParameter {
  readonly name: string;
  readonly in: string;
  readonly schema: { readonly type?: string; readonly format?: string };
}

export interface DescribedOperation {
  /** The method in upper case. */
  readonly method: string;
  readonly path: string;
  readonly parameters: readonly DescribedParameter[];
  /** The media types of the request body, by content type. */
  readonly content: Readonly<Record<string, unknown>>;
  readonly security: readonly object[];
}

const METHODS = ["get", "post", "put", "patch", "delete"];

/** Lists all operations of an OpenAPI document, with their references resolved. */
export function operationsIn(description: unknown): DescribedOperation[] {
  const { paths, security: usual } = fieldsOf(description);
  return Object.entries(fieldsOf(paths)).flatMap(([path, item]) =>
    Object.entries(fieldsOf(item))
      .filter(([method]) => METHODS.includes(method))
      .map(([method, operation]) => {
        const { parameters = [], requestBody, security = usual } = fieldsOf(operation);
        return {
          method: method.toUpperCase(),
          path,
          parameters: (parameters as unknown[]).map(
            (one) => referred(description, one) as DescribedParameter,
          ),
          content: fieldsOf(fieldsOf(referred(description, requestBody))["content"]),
          security: security as object[],
        };
      }),
  );
}

/** Resolves a `$ref` into the document; answers any other part unchanged. */
export function referred(description: unknown, part: unknown): unknown {
  const { $ref } = fieldsOf(part);
  if (typeof $ref !== "string") return part;
  const keys = $ref.slice(2).split("/");
  return referred(
    description,
    keys.reduce<unknown>((one, key) => fieldsOf(one)[key], description),
  );
}
