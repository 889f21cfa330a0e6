import { afterEach, describe, expect, test } from "bun:test";

import { startAlerts } from "../../support/alerts.ts";
import { addAttempt } from "../../support/attempts.ts";
import { browserFixture } from "../../support/dashboard/browser.ts";
import { useWebhookDashboard } from "../../support/dashboard/dashboard-webhooks.ts";
import { allErrors, checkLooks } from "../../support/dashboard/dashboard.ts";
import { button } from "../../support/dashboard/locators.ts";
import { createTestBox } from "../../support/dispatch.ts";
import { isPresent, lacks } from "../../support/needs.ts";
import { CA } from "../../support/network/certificates.ts";
import { startRawReceiver } from "../../support/network/raw-receiver.ts";
import { Receiver, until } from "../../support/network/receiver.ts";
import { LEAF_ALONE, serverOf } from "../../support/network/worthless-certificates.ts";

// Trouble as people meet it.

const world = useWebhookDashboard({ retryDelaysMs: [600_000], http: { ca: [CA] } });

describe.skipIf(lacks("chromium"))("the incident card", () => {
  test("says that the certificate chain is incomplete and what to do, and so does the page of the event", async () => {
    const secure = await startRawReceiver("", { tls: serverOf(LEAF_ALONE) });
    const { id } = await world.subscribe({ webhook_url: secure.url });
    await world.emit(1);
    const failed = async () =>
      (await world.ask("GET", `/${id}/deliveries`)).body["data"] as { event_id: string }[];
    await until("the attempt", async () => (await failed()).length === 1);
    await world.database.db.sql`
      update webhook_subscriptions set consecutive_failure_count = 5 where id = ${id}`;
    const { page, faults } = await world.open(`/webhooks/${id}`);
    const card = page.getByRole("region", { name: "Problem" });
    await card.getByText("Configure the whole chain").waitFor();
    await card.getByText(/^An event is blocking later events: .*chain is incomplete/).waitFor();
    expect(await card.getByText("chain is incomplete").count()).toBe(2);
    expect(await allErrors(page)).toEqual([]);
    await card.getByRole("link", { name: /^Event / }).click();
    await page.getByRole("note").getByText("chain is incomplete").first().waitFor();
    await page.getByText("Configure the whole chain").first().waitFor();
    expect(await allErrors(page)).toEqual([]);
    expect(faults).toEqual([]);
    secure.stop();
  });

  test("is not there for a lane that stands still for a problem on our side, which the health names", async () => {
    const { id } = await world.subscribe({ webhook_url: receiver.url });
    await world.database.db.sql`
      update webhook_subscriptions set sealed_secret = ${createTestBox().seal("other", id)} where id = ${id}`;
    await world.emit(1);
    const { page, faults } = await world.open(`/webhooks/${id}`);
    await page
      .getByText(/^not sent: all events, .* problem on our side \(secret unreadable\) that began /)
      .waitFor();
    await page.getByText("Degraded", { exact: true }).waitFor();
    expect(await page.getByRole("region", { name: "Problem" }).count()).toBe(0);
    await checkLooks(page, "quarantined");
    expect(faults).toEqual([]);
  });

  test("of a degraded subscription has the causes of the failures of the last hour, without those of tests", async () => {
    const { id } = await world.subscribe({ webhook_url: receiver.url });
    const failure = { outcome: "failed", status_code: 503, error_code: "http_status" };
    for (let i = 0; i < 100; i++)
      await addAttempt(world.database.db, id, { sequence: i, ...(i < 6 && failure) });
    const tested = await addAttempt(world.database.db, id, { ...failure, status_code: 500 });
    await world.database.db.sql`
      update delivery_attempts set request_headers = json_build_object('X-SVC-Test', '1') where id = ${tested}`;
    await addAttempt(world.database.db, id);
    const { page, faults } = await world.open("/webhooks");
    await page.getByText("Degraded · 94.1%").waitFor();
    await page.getByRole("link", { name: "Show the causes" }).click();
    const card = page.getByRole("region", { name: "Problem" });
    await card.getByRole("cell", { name: "HTTP 503" }).waitFor();
    expect(await card.getByRole("row").count()).toBe(2);
    await card.getByText("in the last hour").waitFor();
    await card.getByText("94.1%").waitFor();
    await checkLooks(page, "degraded");
    expect(faults).toEqual([]);
  });

  test("of what fails and is still active stands in the list, too, which is not green", async () => {
    const { id } = await world.subscribe({ webhook_url: receiver.url });
    receiver.answer = () => 410;
    await world.emit(3);
    await until("failures", async () => {
      const { body } = await world.ask("GET", `/${id}`);
      return body["consecutive_failure_count"] === 3;
    });
    const { page } = await world.open("/webhooks");
    await page.getByText("Failing", { exact: true }).waitFor();
    await page.getByText("Failures in a row: 3 of 20").waitFor();
    await page.getByText("The first attempt failed").waitFor();
    expect(await page.getByText("Healthy", { exact: true }).count()).toBe(0);
    // What a pointer unfolds stands inside of a landmark, too.
    await page.locator("time").first().hover();
    await page.getByRole("tooltip").waitFor();
    expect(await allErrors(page)).toEqual([]);
  });

  test("that has ended is listed as a past one", async () => {
    const id = await disabled();
    receiver.answer = () => 200;
    const enabled = await world.ask("POST", `/${id}/enable`, { held: "deliver" });
    expect(enabled.status).toBe(200);
    await until("the end of the incident", async () => {
      const { body } = await world.ask("GET", `/${id}/incidents`);
      return (body["incidents"] as unknown[]).length === 1;
    });
    const { page } = await world.open(`/webhooks/${id}`);
    const past = page.getByRole("region", { name: "Past incidents" });
    await past.getByText("Disabled, then recovered").waitFor();
    await past.getByText("HTTP 410").waitFor();
    expect(await allErrors(page)).toEqual([]);
  });

  test("stays disabled where the test fails, in every look", async () => {
    const id = await disabled();
    const { page, faults } = await world.open(`/webhooks/${id}`);
    const answer = Promise.withResolvers<number>();
    receiver.answer = () => answer.promise;
    receiver.received.length = 0;
    await button(page, "Enable…").click();
    await page.getByRole("dialog").getByRole("button", { name: "Enable" }).click();
    await page
      .getByRole("dialog")
      .getByText("If your endpoint answers with a 2xx status")
      .waitFor();
    await page.keyboard.press("Escape");
    await page.getByText("Disabled: test in progress").waitFor();
    await checkLooks(page, "test in progress");
    answer.resolve(500);
    await page.getByText("Disabled: nothing is sent").waitFor();
    await page.getByText("2 events are held").waitFor();
    receiver.answer = () => 500;
    await button(page, "Enable…").click();
    await page.getByRole("dialog").getByRole("button", { name: "Enable" }).click();
    await page.getByRole("alert").getByText("HTTP 500").waitFor();
    await page.getByText("The subscription stays disabled, and its events are held.").waitFor();
    await checkLooks(page, "enabled test failed");
    await button(page, "Try again").click();
    await until("the third test", () => Promise.resolve(receiver.received.length === 3));
    await page.getByText("The subscription stays disabled, and its events are held.").waitFor();
    expect(await isActive(id)).toBe(false);
    const events = receiver.received.map(({ headers }) => headers["x-svc-event"]);
    expect(events).toEqual(["webhook.test", "webhook.test", "webhook.test"]);
    await page.getByRole("link", { name: "Edit the URL" }).click();
    await page.getByLabel("Endpoint URL").waitFor();
    expect(faults).toEqual([]);
  });

  test("has the same beginning and failed attempts wherever they are told, the held events once, and the alerts", async () => {
    const id = await disabled();
    const { body } = await world.ask("GET", `/${id}/incident`);
    const since = String(body["since"]);
    const { page } = await world.open(`/webhooks/${id}`);
    const card = page.getByRole("region", { name: "Problem" });
    const valueOf = (name: string) =>
      card.locator("dl > div").filter({ hasText: name }).locator("dd").first().innerText();
    await card.getByRole("cell", { name: "410" }).waitFor();
    await card.getByText(/^Alerts sent: .*18 failures in a row, disabled/).waitFor();
    await card.getByRole("link", { name: "this event" }).waitFor();
    expect((await valueOf("Failed attempts")).split("\n")[0]).toBe("20");
    const legend = page.getByRole("region", { name: "Over time" }).getByRole("listitem");
    await legend.filter({ hasText: /^Failed\s*20$/ }).waitFor();
    await legend.filter({ hasText: /\s*2 now$/ }).waitFor();
    expect(await page.getByText("2 events are held").count()).toBe(1);
    const begun = await card.locator(`time[datetime="${since}"]`).count();
    expect(begun).toBeGreaterThan(0);
    await page.getByRole("tab", { name: "Deliveries" }).click();
    await page.getByRole("alert").getByText("2 events are held").waitFor();
  });

  test("does not open for a single failed attempt, which is no failing", async () => {
    const { id } = await world.subscribe({ webhook_url: receiver.url });
    receiver.answer = () => 502;
    await world.emit(2);
    await until("the retry", async () => {
      const { body } = await world.ask("GET", `/${id}/health`);
      return body["blocked_attempts"] === 1;
    });
    const { page } = await world.open(`/webhooks/${id}`);
    await page.getByText("An event is blocking later events: HTTP 502").waitFor();
    expect(await page.getByRole("region", { name: "Problem" }).count()).toBe(0);
    await page.getByText("Retrying", { exact: true }).first().waitFor();
    await checkLooks(page, "one retry");
    await page.evaluate(`history.pushState(null, "", "/dashboard/webhooks")`);
    await page.getByText("is being retried; later events wait for it.").waitFor();
    await page.getByText("Last result: HTTP 502.").waitFor();
    expect(await page.getByText("Failing", { exact: true }).count()).toBe(0);
    expect((await world.ask("PATCH", `/${id}`, { ordering: "review" })).status).toBe(200);
    await page.reload();
    await page.getByText("Success rate (24 h)").waitFor();
    expect(await page.getByText("is being retried").count()).toBe(0);
  });
});

describe.skipIf(lacks("chromium"))("the page of alerts", () => {
  test("changes who is told of what, in every look", async () => {
    await world.subscribe({ webhook_url: receiver.url });
    const { page, faults } = await world.open("/webhooks");
    await page.getByRole("link", { name: "Alerts" }).click();
    await page.getByLabel("After 5", { exact: true }).waitFor();
    await checkLooks(page, "alerts");
    expect(faults).toEqual([]);
    await page.getByLabel("Specific addresses").check();
    await page.getByLabel("Addresses", { exact: true }).fill("ops@partner.example\nnobody");
    await page.getByLabel("After 5", { exact: true }).uncheck();
    expect(await page.getByLabel("A subscription is disabled").isDisabled()).toBe(true);
    await button(page, "Save").click();
    await page
      .getByText("Address number 2 must be a single email address without a display name.")
      .waitFor();
    await page.getByLabel("Addresses", { exact: true }).fill("ops@partner.example");
    await page.getByLabel("Alert URL").fill(receiver.url);
    await page.getByLabel("Minutes that an event may wait").fill("45");
    await button(page, "Save").click();
    await page.getByLabel("Alert secret").first().waitFor();
    expect(await allErrors(page)).toEqual([]);
    const { body } = await world.api.call("GET", "/partner/alerts", { token: world.token });
    expect(body).toMatchObject({
      recipients: ["ops@partner.example"],
      webhook_url: receiver.url,
      oldest_waiting_minutes: 45,
    });
    expect(body["kinds"]).not.toContain("failures_5");
    await button(page, "Rotate secret…").click();
    await page.getByRole("dialog").getByRole("button", { name: "Rotate" }).click();
    await page.getByLabel("Alert secret").first().waitFor();
  });
});

const receiver = browserFixture(() => Receiver.start());

let alerting: ReturnType<typeof startAlerts> | undefined;

afterEach(async () => {
  if (!isPresent("chromium")) return;
  receiver.answer = () => 200;
  await alerting?.stop();
  alerting = undefined;
});

const isActive = async (id: string) => (await world.ask("GET", `/${id}`)).body["is_active"];

/** A subscription that has just been disabled, with two events held and what was told of it. */
async function disabled(): Promise<string> {
  const id = await world.disabled(receiver);
  alerting = startAlerts(world);
  await until("the alerts", async () => {
    const { body } = await world.ask("GET", `/${id}/incident`);
    return (body["alerts"] as unknown[]).length === 4;
  });
  return id;
}
