/* SVG paths of the icons, drawn as lines on a grid of 24 by 24 units. */
const PATHS = {
  activity: "M3 12h4l3-8 4 16 3-8h4",
  alert: "M12 4 2.5 20h19L12 4Zm0 6v4m0 3v.01",
  arrowLeft: "M19 12H5m6-6-6 6 6 6",
  arrowUp: "M12 19V5m-6 6 6-6 6 6",
  arrowDown: "M12 5v14m-6-6 6 6 6-6",
  bell: "M6 16V11a6 6 0 1 1 12 0v5l1.5 2h-15L6 16Zm4 5h4",
  book: "M5 4h11a3 3 0 0 1 3 3v13H8a3 3 0 0 1-3-3V4Zm0 13a3 3 0 0 1 3-3h11",
  building: "M5 21V4h9v17M14 9h5v12M3 21h18M8 8h3m-3 4h3m-3 4h3",
  catalog: "M5 4h14v16H5V4Zm4 5h6m-6 3h6m-6 3h4",
  check: "m5 12.5 4.5 4.5L19 7.5",
  chevronDown: "m6 9 6 6 6-6",
  chevronRight: "m9 6 6 6-6 6",
  clock: "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18Zm0 4v5l3 2",
  copy: "M9 9h11v11H9V9Zm-4 6H4V4h11v1",
  eye: "M2 12c3-5 6-7 10-7s7 2 10 7c-3 5-6 7-10 7s-7-2-10-7Zm10-3a3 3 0 1 0 0 6 3 3 0 0 0 0-6Z",
  edit: "M4 20h4L19 9l-4-4L4 16v4Zm9-13 4 4",
  filter: "M4 6h16M7 12h10M10 18h4",
  flag: "M5 21V4h13l-2 4 2 4H5",
  inbox: "M4 5h16v14H4V5Zm0 8h4l1.5 3h5L16 13h4",
  key: "M14.5 3a6.5 6.5 0 1 1-4.6 11.1L4 20H3v-3.5l6-6A6.5 6.5 0 0 1 14.5 3Zm2 4v.01",
  link: "M10 14a4 4 0 0 0 6 .5l3-3a4 4 0 0 0-6-6l-1 1m2 3.5a4 4 0 0 0-6-.5l-3 3a4 4 0 0 0 6 6l1-1",
  list: "M8 6h12M8 12h12M8 18h12M4 6v.01M4 12v.01M4 18v.01",
  lock: "M6 11h12v9H6v-9Zm2 0V8a4 4 0 1 1 8 0v3",
  message: "M4 5h16v11H9l-5 4V5Z",
  moon: "M20 14A8 8 0 1 1 10 4a6.5 6.5 0 0 0 10 10Z",
  pause: "M8 5v14M16 5v14",
  plug: "M9 3v5m6-5v5M6 8h12v4a6 6 0 0 1-12 0V8Zm6 10v3",
  plus: "M12 5v14M5 12h14",
  refresh: "M20 11a8 8 0 0 0-14-4L4 9m0-5v5h5M4 13a8 8 0 0 0 14 4l2-2m0 5v-5h-5",
  search: "M11 4a7 7 0 1 0 0 14 7 7 0 0 0 0-14Zm5 12 4.5 4.5",
  send: "m4 12 16-8-6 16-3-7-7-1Z",
  server: "M4 4h16v6H4V4Zm0 10h16v6H4v-6Zm4-7v.01M8 17v.01",
  shield: "M12 3l8 3v6c0 5-3.5 8-8 9-4.5-1-8-4-8-9V6l8-3Z",
  signOut: "M14 4H5v16h9m2-12 4 4-4 4m4-4H10",
  star: "m12 3 2.8 5.8 6.2.9-4.5 4.4 1 6.3-5.5-3-5.5 3 1-6.3L3 9.7l6.2-.9L12 3Z",
  store: "m4 9 1.5-5h13L20 9v11H4V9Zm0 0h16M9 20v-6h6v6",
  sun: "M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8Zm0-5v2m0 14v2M3 12h2m14 0h2M5.6 5.6 7 7m10 10 1.4 1.4m0-12.8L17 7M7 17l-1.4 1.4",
  trash: "M4 7h16M9 7V4h6v3M6 7l1 13h10l1-13",
  user: "M12 4a4 4 0 1 0 0 8 4 4 0 0 0 0-8ZM4 20c1-4 4-5.5 8-5.5s7 1.5 8 5.5",
  users:
    "M9 5a3.5 3.5 0 1 0 0 7 3.5 3.5 0 0 0 0-7ZM2.5 20c.5-4 3-5.5 6.5-5.5s6 1.5 6.5 5.5M16 5.5a3.5 3.5 0 0 1 0 6.5m2.5 3c2 .8 2.8 2.5 3 5",
  webhook:
    "M8.5 8a3.5 3.5 0 1 1 5.5 2.5l3 5.5M12 8l-3.5 6.5M5 14a3.5 3.5 0 1 0 5 4h6m2-3a3 3 0 1 1-2 4",
  window: "M4 5h16v14H4V5Zm0 4h16M7 7v.01M10 7v.01",
  x: "m6 6 12 12M18 6 6 18",
} as const;

export type IconName = keyof typeof PATHS;

/**
 * Decorative icon that screen readers ignore. A text beside the icon, or the label of its button, must carry
 * the meaning.
 */
export function Icon({ name, size = 18 }: { readonly name: IconName; readonly size?: number }) {
  return (
    <svg
      width={size}
      height={size}
      viewBox="0 0 24 24"
      fill="none"
      stroke="currentColor"
      strokeWidth={1.75}
      strokeLinecap="round"
      strokeLinejoin="round"
      style={{ flexShrink: 0 }}
      aria-hidden
      focusable={false}
    >
      <path d={PATHS[name]} />
    </svg>
  );
}
