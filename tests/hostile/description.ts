/** A parameter of an operation, whether it stands there or among the components. */
export interface DescribedParameter {
  readonly name: string;
  readonly in: string;
  readonly schema: { readonly type?: string; readonly format?: string };
}

export interface DescribedOperation {
  /** In capitals. */
  readonly method: string;
  readonly path: string;
  readonly parameters: readonly DescribedParameter[];
  /** By content type. */
  readonly content: Readonly<Record<string, unknown>>;
  readonly security: readonly object[];
}

const METHODS = ["get", "post", "put", "patch", "delete"];

/** Every operation of an OpenAPI document, with what it refers to. */
export function operationsIn(description: unknown): DescribedOperation[] {
  const { paths, security: usual } = Object(description);
  return Object.entries(Object(paths)).flatMap(([path, item]) =>
    Object.entries(Object(item))
      .filter(([method]) => METHODS.includes(method))
      .map(([method, operation]) => {
        const { parameters = [], requestBody, security = usual } = Object(operation);
        return {
          method: method.toUpperCase(),
          path,
          parameters: parameters.map((one: unknown) => referred(description, one)),
          content: Object(Object(referred(description, requestBody)).content),
          security,
        };
      }),
  );
}

/** What a reference into the document leads to; anything else as it is. */
export function referred(description: unknown, part: unknown): unknown {
  const { $ref } = Object(part);
  if (typeof $ref !== "string") return part;
  const keys = $ref.slice(2).split("/");
  return referred(
    description,
    keys.reduce<unknown>((one, key) => Object(one)[key], description),
  );
}
