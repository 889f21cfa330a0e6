export interface Guide {
  /** Of its file in ./guides. */
  readonly name: string;
  readonly title: string;
  readonly path: string;
}

interface Chapter {
  readonly title: string;
  readonly guides: readonly Guide[];
}

const guide = (name: string, title: string): Guide => ({ name, title, path: `/docs/${name}` });

/** In the order in which they are best read. */
export const CHAPTERS: readonly Chapter[] = [
  {
    title: "Start",
    guides: [
      { name: "index", title: "Overview", path: "/docs" },
      guide("getting-started", "Getting started"),
      guide("command", "The command"),
    ],
  },
  {
    title: "Sign-in",
    guides: [
      guide("sign-in", "Sign-in and tokens"),
      guide("oauth", "OAuth for apps"),
      guide("single-sign-on", "Single sign-on"),
    ],
  },
  {
    title: "Webhooks",
    guides: [
      guide("receiving", "Receiving"),
      guide("verifying", "Verifying and replay"),
      guide("events", "Events"),
      guide("ordering-and-retries", "Ordering and retries"),
      guide("batch", "Batch"),
      guide("recovery", "Recovery"),
      guide("going-live", "Going live"),
      guide("embedding", "The dashboard in your pages"),
    ],
  },
  { title: "Review sites", guides: [guide("review-sites", "Reporting reviews")] },
  {
    title: "The API",
    guides: [guide("errors-and-limits", "Errors and limits"), guide("versioning", "Versioning")],
  },
];

export const GUIDES = CHAPTERS.flatMap(({ guides }) => guides);
