import { isTest, type ListedDelivery } from "../data/reads.ts";

/** Shows the review that an event is about, with its stars and its store. */
export function Review({ delivery }: { readonly delivery: ListedDelivery }) {
  const { review_id: id, rate, store_name: store } = delivery;
  if (isTest(delivery)) return <span className="finding">Test</span>;
  if (id === null) return <span className="finding">{store ?? "–"}</span>;
  return (
    <>
      <span>
        {rate !== null && <span title={`${rate} of 5 stars`}>{rate} ★ · </span>}#{id}
      </span>{" "}
      <span className="finding">{store}</span>
    </>
  );
}
