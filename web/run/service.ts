// The service worker: keeps every file of the folder, so that the page works without a network after the first visit.

declare const VERSION: string; // written by the export: a new export replaces the kept files
declare const FILES: string[];

const scope = self as any;
const cacheName = `regard-${scope.registration.scope}-${VERSION}`;

scope.addEventListener("install", (event: any) => {
  event.waitUntil(
    caches
      .open(cacheName)
      .then((cache) => cache.addAll(FILES))
      .then(() => scope.skipWaiting()),
  );
});

scope.addEventListener("activate", (event: any) => {
  const isOld = (name: string) => name.startsWith(`regard-${scope.registration.scope}-`) && name !== cacheName;
  event.waitUntil(
    caches
      .keys()
      .then((names) => Promise.all(names.filter(isOld).map((name) => caches.delete(name))))
      .then(() => scope.clients.claim()),
  );
});

scope.addEventListener("fetch", (event: any) => {
  if (event.request.method !== "GET") return;
  event.respondWith(caches.match(event.request, { ignoreSearch: true }).then((kept) => kept ?? fetch(event.request)));
});
