import { Button } from "@mantine/core";
import { Link, useSearchParams } from "wouter";

import { PageHeader } from "../../ui/page-header.tsx";
import { EmptyState, Loaded } from "../../ui/states.tsx";
import { CreateForm } from "./create-form.tsx";
import { CreationSteps } from "./creation-steps.tsx";
import { useSubscriptions } from "./data/data.ts";
import type { Subscription } from "./data/reads.ts";
import { KINDS } from "./kinds.ts";
import { VerifyStep } from "./verify-step.tsx";

import "./webhooks.css";

/**
 * Leads over endpoint and events to the verification, which has the subscription in the address, so that a reload loses
 * nothing.
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
      {id === null ? <Creation wanted={params.get("kind")} /> : <Verification id={id} />}
    </>
  );
}

interface CreationProps {
  /** The kind that the address names. */
  readonly wanted: string | null;
}

function Creation({ wanted }: CreationProps) {
  const subscriptions = useSubscriptions();
  return (
    <Loaded query={subscriptions}>
      {({ data }) => <FreeSlotForm taken={data} wanted={wanted} />}
    </Loaded>
  );
}

interface FreeSlotFormProps extends CreationProps {
  readonly taken: readonly Subscription[];
}

/** Shows the form for a slot that is free, if one is. */
function FreeSlotForm({ taken, wanted }: FreeSlotFormProps) {
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

function Verification({ id }: { readonly id: string }) {
  return (
    <>
      <CreationSteps active={2} />
      <VerifyStep id={id} />
    </>
  );
}
