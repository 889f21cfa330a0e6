import { Button, Paper, SimpleGrid } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";

import { useSession } from "../../session/session.tsx";
import { Icon } from "../../ui/icon.tsx";
import { PageHeader } from "../../ui/layout.tsx";
import { EmptyState, Loaded } from "../../ui/states.tsx";
import { useIsReadOnly, useViewedPartner, useReader } from "./data/data.ts";
import { subscriptionsOptions } from "./data/reads.ts";
import { KINDS } from "./data/subscription-words.ts";
import { SlotCard } from "./slot-card.tsx";
import "./webhooks.css";

export function Page() {
  const subscriptions = useQuery(subscriptionsOptions(useReader()));
  const viewed = useViewedPartner();
  const { portal } = useSession();
  // A portal link to single subscriptions does not show all subscriptions, so the page cannot tell whether
  // another slot is free.
  const hasAll = portal?.pages.includes("webhooks") ?? true;
  const mayCreate = !useIsReadOnly() && hasAll;
  const isFull = (subscriptions.data?.data.length ?? 0) >= KINDS.length;
  // Makes the create button less prominent if a subscription is disabled, because that needs attention first.
  const hasDisabled = subscriptions.data?.data.some((one) => !one.is_active) ?? false;
  return (
    <>
      <PageHeader
        title={viewed === undefined ? "Webhooks" : `Webhooks of ${viewed.name}`}
        description={`${viewed === undefined ? "Your" : "Its"} systems hear of reviews, responses and connections by signed HTTP requests.`}
        actions={
          viewed === undefined && (
            <>
              {portal === undefined && (
                <Button component={Link} href="/webhooks/alerts" variant="default">
                  Alerts
                </Button>
              )}
              {mayCreate && !isFull && (
                <Button
                  component={Link}
                  href="/webhooks/new"
                  variant={hasDisabled ? "default" : "filled"}
                  leftSection={<Icon name="plus" size={16} />}
                >
                  New subscription
                </Button>
              )}
            </>
          )
        }
      />
      <Loaded query={subscriptions}>
        {({ data }) => (
          <SimpleGrid cols={{ base: 1, md: 2 }} spacing="lg">
            {KINDS.map((kind) => {
              const one = data.find(({ delivery_kind }) => delivery_kind === kind.kind);
              if (one !== undefined) return <SlotCard key={kind.kind} subscription={one} />;
              return hasAll && <EmptySlot key={kind.kind} kind={kind} />;
            })}
          </SimpleGrid>
        )}
      </Loaded>
    </>
  );
}

/** Shows a kind of subscription that the partner does not have yet, with the use case of this kind. */
function EmptySlot({ kind }: { readonly kind: (typeof KINDS)[number] }) {
  const { title, purpose } = kind;
  const isReadOnly = useIsReadOnly();
  return (
    <Paper component="section" className="free-slot" aria-label={`${title}: free`}>
      <EmptyState
        icon={kind.kind === "batch" ? "clock" : "send"}
        title={`${title}: not in use`}
        action={
          !isReadOnly && (
            <Button
              component={Link}
              href={`/webhooks/new?kind=${kind.kind}`}
              variant="light"
              mt="sm"
            >
              Set up {kind.kind} delivery
            </Button>
          )
        }
      >
        {purpose}
      </EmptyState>
    </Paper>
  );
}
