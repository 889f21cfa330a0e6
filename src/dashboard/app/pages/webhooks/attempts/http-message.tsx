import { Stack, Switch, Table, Text } from "@mantine/core";
import { useState } from "react";

import { CodeBlock } from "../../../ui/copy.tsx";
import { inLines } from "../../../ui/json.ts";

type Headers = Readonly<Record<string, string | readonly string[]>>;

interface HttpMessageProps {
  /** `Request` or `Response`. */
  readonly name: string;
  readonly headers: Headers;
  readonly body: string;
}

/** Shows headers and body as text. The body is laid out unless somebody wants it as it was sent. */
export function HttpMessage({ name, headers, body }: HttpMessageProps) {
  return (
    <Stack gap="sm">
      <HeaderTable headers={headers} />
      {body === "" ? (
        <Text size="sm" c="dimmed">
          The body was empty.
        </Text>
      ) : (
        <Body name={name} body={body} />
      )}
    </Stack>
  );
}

function HeaderTable({ headers }: { readonly headers: Headers }) {
  return (
    <Table fz="xs" layout="fixed" verticalSpacing={3} horizontalSpacing={0} withRowBorders={false}>
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
  );
}

function Body({ name, body }: Pick<HttpMessageProps, "name" | "body">) {
  const [isLaidOut, setLaidOut] = useState(true);
  const pretty = inLines(body);
  const shown = isLaidOut ? (pretty ?? body) : body;
  return (
    <>
      {pretty !== undefined && (
        <Switch
          size="xs"
          label="Lay out JSON"
          checked={isLaidOut}
          onChange={(event) => setLaidOut(event.currentTarget.checked)}
        />
      )}
      <CodeBlock label={`${name} body`} code={shown} copied={body} wraps />
    </>
  );
}
