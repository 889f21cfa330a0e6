import { Type } from "@sinclair/typebox";

/** The security settings of a company, which apply only to its own users (contract 4.27). */
export const requirement = {
  require_second_factor: Type.Boolean({
    description: "Whether its own users need a second factor.",
  }),
};

export const SecurityObject = Type.Object(requirement, {
  title: "SecuritySettings",
  examples: [{ require_second_factor: true }],
});

export const SecurityBody = Type.Object(requirement, {
  additionalProperties: false,
  title: "SecurityChanges",
  examples: [{ require_second_factor: true }],
});
