import { Button, Stepper } from "@mantine/core";
import { Link, useSearchParams } from "wouter";

import { Icon } from "../../ui/icon.tsx";
import { PageHeader } from "../../ui/page-header.tsx";
import { EmptyState, Loaded } from "../../ui/states.tsx";
import { CreateForm } from "./create-form.tsx";
import { VerifyStep } from "./verify-step.tsx";
import { useSubscriptions } from "./data.ts";
import type { Subscription } from "./model.ts";
import { KINDS } from "./kinds.ts";

/** Endpoint, events, verification. The last step has the subscription in the address: a reload loses nothing. */
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
      {id === null ? <Creation wanted={params.get("kind")} /> : <Finished id={id} />}
    </>
  );
}

function Creation({ wanted }: { readonly wanted: string | null }) {
  const subscriptions = useSubscriptions();
  return (
    <Loaded query={subscriptions}>{({ data }) => <IfFree taken={data} wanted={wanted} />}</Loaded>
  );
}

function IfFree({
  taken,
  wanted,
}: {
  readonly taken: readonly Subscription[];
  readonly wanted: string | null;
}) {
  const free = KINDS.filter(({ kind }) => !taken.some((one) => one.delivery_kind === kind));
  const first = free.find(({ kind }) => kind === wanted) ?? free[0];
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

function Finished({ id }: { readonly id: string }) {
  return (
    <>
      <Stepper
        active={2}
        size="sm"
        mb="lg"
        maw={760}
        completedIcon={<Icon name="check" size={16} />}
      >
        <Stepper.Step label="Endpoint" disabled />
        <Stepper.Step label="Events" disabled />
        <Stepper.Step label="Verify" />
      </Stepper>
      <VerifyStep id={id} />
    </>
  );
}
