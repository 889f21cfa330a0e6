import { connectStore, created, historyOfSite, report, reviewIdOf } from "./factory.ts";
import { startWebhooks } from "./webhooks.ts";

/** The reviews of an account with two stores, and the requests of its users about one of them. */
export async function startAccountReviews() {
  const world = await startWebhooks();
  const { api, database, provider, siteId, tenants } = world;
  const [one, two] = tenants.partners;
  const [account, sibling] = one.accounts;
  const tokens = {
    ...world.tokens,
    user: await api.login(account.user.email),
    sibling: await api.login(sibling.owner.email),
    stranger: await api.login(two.accounts[0].owner.email),
  };
  let count = 0;
  /** The review that `post` and `events` are about, which a test sets. */
  const about = { id: 0 };
  return Object.assign(about, {
    ...world,
    account,
    tokens,
    westSite: await connectStore(database.db, account, { provider, store: 1 }),
    /** Reports a new review, at the first store by default. Returns its id and that of the provider. */
    async addReview(site = siteId): Promise<{ id: number; externalId: string }> {
      const externalId = `review-${++count}`;
      await report(api, provider, [created(site, externalId)]);
      return { id: await reviewIdOf(database.db, externalId), externalId };
    },
    /** Sends an action about a review, by default as the user of the account. */
    post: (
      action: string,
      body: unknown,
      { token = tokens.user, review = about.id }: { token?: string; review?: number } = {},
    ) => api.call("POST", `/account/reviews/${review}/${action}`, { token, body }),
    /** Reads what was recorded about the review since it was received. */
    async events(): Promise<[string, unknown][]> {
      const rows = await historyOfSite(database.db, siteId);
      return rows
        .filter((row) => row.reviewId === about.id && row.event !== "review_received")
        .map(({ event, metadata }) => [event, metadata]);
    },
  });
}
