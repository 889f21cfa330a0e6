import { Text } from "@mantine/core";

import { counted } from "../../ui/format.ts";

/** Button that opens a list of the account's stores with their ids and names. */
export function Stores({
  stores,
}: {
  readonly stores: readonly { readonly id: number; name: string }[];
}) {
  if (stores.length === 0) return "None";
  return (
    <details>
      <summary>{counted(stores.length, "store")}</summary>
      <Text size="sm" component="ul" className="plain-list">
        {stores.map(({ id, name }) => (
          <li key={id}>
            {name} ({id})
          </li>
        ))}
      </Text>
    </details>
  );
}
