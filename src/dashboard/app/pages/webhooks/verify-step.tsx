import { Alert, Button, Group, Paper, Stack, Text, Title } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useState, type ReactNode } from "react";
import { Link } from "wouter";

import { Icon } from "../../ui/icon.tsx";
import { useSubscription } from "./data/data.ts";
import { freshSecret } from "./fresh-secret.ts";
import { Secret } from "./secret.tsx";
import { TestEvent } from "./test-event.tsx";
import { VerifyCode } from "./verify-code.tsx";

/** Shows after the creation the secret, the code that checks signatures, and a delivery to try both. */
export function VerifyStep({ id }: { readonly id: string }) {
  const { data } = useSubscription(id);
  const [fresh] = useState(freshSecret(useQueryClient(), id));
  return (
    <Stack maw={760} gap="lg">
      <Alert color="teal" icon={<Icon name="check" />} title="The subscription is active">
        {data === undefined ? "Events are on their way" : `“${data.label}” gets events`} from now
        on. Three steps make sure that your endpoint can trust them.
      </Alert>
      <Part number={1} title="Store the secret">
        <Text size="sm" mb="sm">
          Put it into the secret store of your endpoint, not into its code. You can look at it again
          in the settings at any time.
        </Text>
        <Secret id={id} {...(fresh !== undefined && { fresh })} />
      </Part>
      <Part number={2} title="Check signatures with it">
        <VerifyCode />
      </Part>
      <Part number={3} title="Try it">
        <Text size="sm" mb="sm">
          A <code>webhook.test</code> is signed, sent, retried and recorded like every event.
        </Text>
        <TestEvent id={id} />
      </Part>
      <Group justify="flex-end">
        <Button component={Link} href={`/webhooks/${id}`} variant="default">
          Go to the subscription
        </Button>
      </Group>
    </Stack>
  );
}

function Part({
  number,
  title,
  children,
}: {
  readonly number: number;
  readonly title: string;
  readonly children: ReactNode;
}) {
  return (
    <Paper withBorder p="lg" component="section">
      <Title order={2} size="h4" mb="xs">
        {number}. {title}
      </Title>
      {children}
    </Paper>
  );
}
