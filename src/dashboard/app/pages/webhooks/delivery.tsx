import { useQuery } from "@tanstack/react-query";
import { useLocation, useParams } from "wouter";

import { PageHeader } from "../../ui/layout.tsx";
import { Loaded } from "../../ui/states.tsx";
import { useReader } from "./data/data.ts";
import { deliveryOptions, subscriptionOptions } from "./data/reads.ts";
import { DeliveryDetail, NeighbourButtons, useListSearch } from "./deliveries/delivery-detail.tsx";
import { RedeliverButton } from "./deliveries/delivery-detail.tsx";

/** Page that shows one event and all attempts to deliver it to one subscription, with headers and bodies. */
export function Page() {
  const { id = "", eventId = "" } = useParams();
  const [, navigate] = useLocation();
  const search = useListSearch();
  const delivery = useQuery(deliveryOptions(useReader(), id, eventId));
  const subscription = useQuery(subscriptionOptions(useReader(), id)).data;
  const show = (other: string) =>
    navigate(`/webhooks/${id}/deliveries/${other}?${search}`, { replace: true });
  const { event } = delivery.data ?? {};
  return (
    <>
      <PageHeader
        title={event ?? "Delivery"}
        back={{
          href: `/webhooks/${id}?${search}`,
          title: `Deliveries of ${subscription?.label ?? "the subscription"}`,
        }}
        actions={
          <>
            <NeighbourButtons id={id} eventId={eventId} onShow={show} />
            {event !== undefined && (
              <RedeliverButton
                id={id}
                eventId={eventId}
                isActive={subscription?.is_active ?? true}
              />
            )}
          </>
        }
      />
      <Loaded query={delivery}>
        {(one) => <DeliveryDetail key={eventId} id={id} delivery={one} />}
      </Loaded>
    </>
  );
}
