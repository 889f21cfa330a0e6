import { Badge, Button, Group, Stack, Text } from "@mantine/core";
import { useState } from "react";

import { useSessionState } from "../../session.tsx";
import { Confirm } from "../../ui/confirm.tsx";
import { Icon } from "../../ui/icon.tsx";
import { notify } from "../../ui/notify.ts";
import { Section } from "../../ui/section.tsx";
import { ErrorNotice, Loading } from "../../ui/states.tsx";
import { ExactTime, LastUsed, Time } from "../../ui/time.tsx";
import { deviceOf } from "./user-agent.ts";
import { useSessions, type SignedIn } from "./use-sessions.ts";

const METHODS: Readonly<Record<string, string>> = {
  login: "With email and password",
  sso: "With single sign-on",
  password_reset: "With a new password",
  password_grant: "An app, with your password",
  authorization_code: "An app that you allowed",
};

export function SessionsSection() {
  const { sessions, error, retry, next, end, endOthers } = useSessions();
  const { signOut } = useSessionState();
  const [ending, setEnding] = useState<SignedIn>();
  const [isEndingAll, setEndingAll] = useState(false);
  const others = sessions?.filter((one) => !one.is_current) ?? [];
  return (
    <Section
      title="Where you are signed in"
      description="Browsers and apps that hold a live token of yours. End what you do not know, then change your password."
      actions={
        others.length > 0 && (
          <Button variant="default" onClick={() => setEndingAll(true)}>
            End all others
          </Button>
        )
      }
    >
      {error !== null && <ErrorNotice error={error} retry={retry} />}
      {error === null && sessions === undefined && <Loading />}
      {sessions !== undefined && (
        <ul className="rows" aria-label="Sessions">
          {sessions.map((one) => (
            <Row
              key={one.id}
              session={one}
              onEnd={() => (one.is_current ? signOut() : setEnding(one))}
            />
          ))}
        </ul>
      )}
      {next !== undefined && (
        <Group justify="center">
          <Button variant="default" onClick={next}>
            Show older ones
          </Button>
        </Group>
      )}
      <Confirm
        opened={ending !== undefined}
        onClose={() => setEnding(undefined)}
        title="End this session?"
        action="End the session"
        danger
        onConfirm={async () => {
          if (ending === undefined) return;
          await end(ending);
          notify.done("The session is ended.");
        }}
      >
        {ending !== undefined && deviceOf(ending.user_agent)} is signed out at once. Whoever uses it
        has to sign in again.
      </Confirm>
      <Confirm
        opened={isEndingAll}
        onClose={() => setEndingAll(false)}
        title="End all other sessions?"
        action="End all others"
        danger
        onConfirm={async () => {
          await endOthers();
          notify.done("Only this session is left.");
        }}
      >
        Every other browser and app of yours is signed out at once. API tokens stay; you find them
        under API keys.
      </Confirm>
    </Section>
  );
}

function Row({ session, onEnd }: { readonly session: SignedIn; readonly onEnd: () => void }) {
  const { is_current: isCurrent, method, ip, user_agent: userAgent, client_id: clientId } = session;
  const device = deviceOf(userAgent);
  return (
    <li className="row">
      <Stack gap={2} className="grows">
        <Group gap="xs">
          <Icon name={clientId === null ? "user" : "plug"} size={16} />
          <Text fw={600} title={userAgent ?? undefined}>
            {device}
          </Text>
          {isCurrent && (
            <Badge variant="light" color="teal" tt="none" radius="sm">
              This one
            </Badge>
          )}
        </Group>
        <Text size="sm" c="dimmed">
          {METHODS[method] ?? method}
          {ip !== null && `, from ${ip}`}
          {clientId !== null && `, client ${clientId}`}
        </Text>
        <Text size="sm" c="dimmed">
          Since <ExactTime at={session.created_at} />, <LastUsed at={session.last_used_at} />, ends{" "}
          <Time at={session.expires_at} /> at the latest
        </Text>
      </Stack>
      <Button
        variant="default"
        size="xs"
        onClick={onEnd}
        aria-label={isCurrent ? "Sign out of this session" : `End the session of ${device}`}
      >
        {isCurrent ? "Sign out" : "End"}
      </Button>
    </li>
  );
}
