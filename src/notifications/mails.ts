import { brandedMail } from "../lib/branded-mail.ts";
import type { NewMail } from "../outbox/mail.ts";
import type { Owner, Subject } from "./model.ts";

/** Contract 9.5: tells the reviewer that the business has answered on the review site. */
export function homeownerNotice(to: string, about: Subject): NewMail {
  const { storeName, accountName, siteName, reviewer, responseBody } = about;
  const content = {
    subject: `${storeName} responded to your review`,
    greeting: reviewer === null ? "Hello," : `Hello ${reviewer},`,
    paragraphs: [
      `${storeName} (${accountName}) has responded to the review that you wrote on ${siteName}.`,
      ...(responseBody === null ? [`You can read the response on ${siteName}.`] : []),
    ],
    quote: responseBody,
  };
  return { to, ...brandedMail(content, about), kind: "homeowner_notice" };
}

const FLAG_TEXT: Readonly<Record<string, string>> = {
  under_review: "is under review",
  accepted: "was accepted",
  rejected: "was rejected",
  withdrawn: "was withdrawn",
};

/** Contract 9.5: a change of a flag's status, to the account owner. */
export function flagStatusMail(owner: Owner, about: Subject, to: string): NewMail {
  const { storeName, siteName, rate, reviewer } = about;
  const what = FLAG_TEXT[to] ?? `is now ${to}`;
  const content = {
    subject: `The flag on a review of ${storeName} ${what}`,
    greeting: `Hello ${owner.name},`,
    paragraphs: [
      `The flag on the review by ${reviewer ?? "an anonymous reviewer"} (${rate} of 5 on ${siteName}) of ${storeName} ${what}.`,
      `The number of the review is ${about.reviewId}.`,
    ],
  };
  return { to: owner.email, ...brandedMail(content, about), kind: "flag_status_changed" };
}
