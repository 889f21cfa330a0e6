import { Button, Group, Stack, Text } from "@mantine/core";
import { useState } from "react";

import { BASE_URL } from "../../session.tsx";
import { Confirm } from "../../ui/confirm.tsx";
import { CodeBlock, SecretField } from "../../ui/copy.tsx";
import { notify } from "../../ui/notify.ts";
import { Section } from "../../ui/section.tsx";
import { ExactTime, LastUsed } from "../../ui/time.tsx";
import { Refused } from "./refused.tsx";
import { useDashboardToken, type Token } from "./use-dashboard-token.ts";

const EXAMPLE = `curl -H "Authorization: Bearer $TOKEN" ${BASE_URL}/verify-token`;

/** Fetched on request only: the server writes each look into the audit log. */
export function DashboardToken() {
  const own = useDashboardToken();
  return (
    <Section
      title="Personal access token"
      description="One per person, for your own integrations. It acts as you, never expires, and can be shown here again. A new password ends it."
      actions={
        own.token === undefined && (
          <Button onClick={own.open} loading={own.isBusy}>
            Manage token
          </Button>
        )
      }
    >
      {own.error !== undefined && <Refused error={own.error} />}
      {own.token === null && (
        <Group justify="space-between">
          <Text size="sm">You have no token yet.</Text>
          <Button onClick={own.generate} loading={own.isBusy}>
            Generate token
          </Button>
        </Group>
      )}
      {own.token && <Existing token={own.token} own={own} />}
    </Section>
  );
}

function Existing({
  token,
  own,
}: {
  readonly token: Token;
  readonly own: ReturnType<typeof useDashboardToken>;
}) {
  const [asked, setAsked] = useState<"regenerate" | "delete">();
  const close = () => setAsked(undefined);
  return (
    <Stack>
      <SecretField key={token.token} label="Token" value={token.token} />
      <Group justify="space-between" gap="sm">
        <Text size="sm" c="dimmed">
          Generated <ExactTime at={token.created_at} />, <LastUsed at={token.last_used_at} />
        </Text>
        <Group gap="xs">
          <Button variant="default" size="xs" onClick={() => setAsked("regenerate")}>
            Regenerate
          </Button>
          <Button variant="light" color="red" size="xs" onClick={() => setAsked("delete")}>
            Delete
          </Button>
        </Group>
      </Group>
      <CodeBlock label="Try it" code={EXAMPLE} />
      <Confirm
        opened={asked === "regenerate"}
        onClose={close}
        title="Regenerate the token?"
        action="Regenerate"
        danger
        onConfirm={async () => {
          await own.regenerate();
          notify.done("There is a new token. The old one works no more.");
        }}
      >
        The present token stops working at once, and with it everything that uses it, until it has
        the new one. This cannot be taken back.
      </Confirm>
      <Confirm
        opened={asked === "delete"}
        onClose={close}
        title="Delete the token?"
        action="Delete"
        danger
        onConfirm={async () => {
          await own.remove();
          notify.done("The token is deleted.");
        }}
      >
        Everything that uses it stops working at once. You can generate another one later.
      </Confirm>
    </Stack>
  );
}
