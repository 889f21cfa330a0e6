import { Alert, Button, Group, Paper, Stack, Text, Title } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { Link, useSearchParams } from "wouter";

import { Icon } from "../../ui/icon.tsx";
import { PageHeader } from "../../ui/layout.tsx";
import { EmptyState, Loaded } from "../../ui/states.tsx";
import { CreateForm, CreationSteps } from "./form/create-form.tsx";
import { useReader } from "./data/data.ts";
import { type Subscription, subscriptionOptions, subscriptionsOptions } from "./data/reads.ts";
import { KINDS } from "./data/subscription-words.ts";
import { TestEvent } from "./test-event.tsx";
import "./webhooks.css";
import { freshSecret, Secret, VerifyCode } from "./form/verify-code.tsx";

/**
 * Page that creates a subscription in the steps endpoint, events and verification. In the verification step the
 * address contains the id of the new subscription, so that a reload continues with this step.
 */
export function Page() {
  const [params] = useSearchParams();
  const id = params.get("id");
  return (
    <>
      <PageHeader
        key={id}
        title="New subscription"
        back={{ href: "/webhooks", title: "Webhooks" }}
        description="From the address of your endpoint to a verified test delivery."
      />
      {id === null ? <Creation requestedKind={params.get("kind")} /> : <Verification id={id} />}
    </>
  );
}

interface CreationProps {
  /** Kind of subscription that the address asks for; null if it names none. */
  readonly requestedKind: string | null;
}

function Creation({ requestedKind }: CreationProps) {
  const subscriptions = useQuery(subscriptionsOptions(useReader()));
  return (
    <Loaded query={subscriptions}>
      {({ data }) => <FreeSlotForm taken={data} requestedKind={requestedKind} />}
    </Loaded>
  );
}

interface FreeSlotFormProps extends CreationProps {
  readonly taken: readonly Subscription[];
}

/**
 * Shows the form for the requested kind of subscription. If the partner already has a subscription of this
 * kind, shows the form for the first kind that is still free.
 */
function FreeSlotForm({ taken, requestedKind }: FreeSlotFormProps) {
  const free = KINDS.filter(({ kind }) => !taken.some((one) => one.delivery_kind === kind));
  const first = free.find(({ kind }) => kind === requestedKind) ?? free[0];
  if (first === undefined)
    return (
      <EmptyState
        icon="webhook"
        title="Both slots are taken"
        action={
          <Button component={Link} href="/webhooks">
            Go to your subscriptions
          </Button>
        }
      >
        A partner has one immediate and one batch subscription. Change one of them, or delete it to
        begin anew.
      </EmptyState>
    );
  return <CreateForm taken={taken} initialKind={first.kind} />;
}

function Verification({ id }: { readonly id: string }) {
  return (
    <>
      <CreationSteps active={2} />
      <VerifyStep id={id} />
    </>
  );
}

/**
 * Last step of the creation: shows the signing secret, sample code that verifies signatures, and a button that
 * sends a test event.
 */
function VerifyStep({ id }: { readonly id: string }) {
  const { data } = useQuery(subscriptionOptions(useReader(), id));
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
