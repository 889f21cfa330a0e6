import { useQuery } from "@tanstack/react-query";
import { Redirect, useLocation, useParams } from "wouter";

import { PageHeader, useIsNarrow } from "../../ui/layout.tsx";
import { Loaded } from "../../ui/states.tsx";
import { useReader } from "./data/data.ts";
import { deliveryOptions, subscriptionOptions } from "./data/reads.ts";
import { DeliveryDetail, NeighbourButtons, useListSearch } from "./deliveries/delivery-detail.tsx";
import { RedeliverButton } from "./deliveries/redeliver-button.tsx";

/**
 * Page that shows one event and all attempts to deliver it to one subscription, with headers and bodies. In a wide
 * window the event stands beside the list instead, at the address of the list.
 */
export function Page() {
  const { id = "", eventId = "" } = useParams();
  const [, navigate] = useLocation();
  const search = useListSearch();
  const delivery = useQuery(deliveryOptions(useReader(), id, eventId));
  const subscription = useQuery(subscriptionOptions(useReader(), id)).data;
  const show = (other: string) =>
    navigate(`/webhooks/${id}/deliveries/${other}?${search}`, { replace: true });
  const { event } = delivery.data ?? {};
  const isWide = !useIsNarrow("xl");
  if (isWide) {
    const beside = new URLSearchParams(search);
    beside.set("open", eventId);
    return <Redirect replace to={`/webhooks/${id}?${beside}`} />;
  }
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
            {delivery.data && <RedeliverButton id={id} delivery={delivery.data} />}
          </>
        }
      />
      <Loaded query={delivery}>
        {(one) => <DeliveryDetail key={eventId} id={id} delivery={one} />}
      </Loaded>
    </>
  );
}
