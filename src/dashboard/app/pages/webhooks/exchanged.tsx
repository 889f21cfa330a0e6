import { Stack, Switch, Table, Text } from "@mantine/core";
import { useState } from "react";

import { CodeBlock } from "../../ui/copy.tsx";
import { inLines } from "../../ui/json.ts";

/** Headers and body of one direction, as text. The body stays as it was sent unless somebody asks otherwise. */
export function Exchanged({
  name,
  headers,
  body,
}: {
  readonly name: string;
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  readonly body: string;
}) {
  const [isLaidOut, setLaidOut] = useState(true);
  const pretty = inLines(body);
  const shown = isLaidOut ? (pretty ?? body) : body;
  return (
    <Stack gap="sm">
      <Table
        fz="xs"
        layout="fixed"
        verticalSpacing={3}
        horizontalSpacing={0}
        withRowBorders={false}
      >
        <Table.Tbody>
          {Object.entries(headers).map(([header, value]) => (
            <Table.Tr key={header}>
              <Table.Th scope="row" w="42%" fw={600}>
                {header}
              </Table.Th>
              <Table.Td ff="monospace">
                {typeof value === "string" ? value : value.join(", ")}
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
      {body === "" ? (
        <Text size="sm" c="dimmed">
          The body was empty.
        </Text>
      ) : (
        <>
          {pretty !== undefined && (
            <Switch
              size="xs"
              label="Lay out JSON"
              checked={isLaidOut}
              onChange={(event) => setLaidOut(event.currentTarget.checked)}
            />
          )}
          <CodeBlock label={`${name} body`} code={shown} copied={body} />
        </>
      )}
    </Stack>
  );
}
