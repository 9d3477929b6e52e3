/* Regard look. Sources: web/. */
"use strict";(()=>{function Jt(e,t,n,o){let r,s=location.hash,i=l=>{let c=t();if(!(o?.aborted||location.hash!==s||c===(s||e))){try{history[l?"pushState":"replaceState"](null,"",c)}catch{}s=location.hash}},a=()=>{clearTimeout(r),s=location.hash,n(s)};return window.addEventListener("hashchange",a,{signal:o}),{changed(l=!1){clearTimeout(r),l?i(!0):r=setTimeout(()=>i(!1),100)}}}function m(e,t={},...n){let o=document.createElement(e);return en(o,t),jo(o,n),o}function en(e,t){for(let[n,o]of Object.entries(t))typeof o=="function"?e.addEventListener(n.slice(2),o):o==null||o===!1?e.removeAttribute(n):e.setAttribute(n,o===!0?"":String(o))}function j(e,...t){let n=document.activeElement,o=e.contains(n);e.replaceChildren(),jo(e,t),o&&e.contains(n)&&n.focus({preventScroll:!0})}function jo(e,t){for(let n of t)n==null||n===!1||e.append(typeof n=="string"?document.createTextNode(n):n)}function Me(e,t,n){let o=m("input",{type:"checkbox",onchange:()=>n(o.checked)});return o.checked=t,m("label",{class:"control"},o,e)}function Te(e,t,n,o){let r=t.map(([s,i])=>m("button",{type:"button","aria-pressed":String(s===n),onclick:()=>o(s)},i));return m("div",{class:"choice",role:"group","aria-label":e},...r)}function Se(e,t,n,o){let r=m("select",{onchange:()=>o(r.value)});for(let[s,i]of t)r.append(m("option",{value:s},i));return r.value=n,m("label",{class:"control"},e,r)}function Vo(e){return e.replace(/^[\p{P}\p{S}]+|[\p{P}\p{S}]+$/gu,"")||e}var Wi="Which training pairs taught this?";function Ko(e,t){let n=m("div",{class:"blame",role:"status"}),o=e.split(/(\s+)/).map(r=>{if(!r.trim())return r;let s=Vo(r);return m("button",{type:"button",title:Wi,onclick:()=>{Ui(n,s,()=>t(s))}},r)});return[m("bdi",{class:"words"},...o),n]}async function Ui(e,t,n){j(e,m("p",{},`Looking for pairs with “${t}” …`));try{j(e,...Gi(t,(await n()).candidates))}catch(o){j(e,m("p",{},o.message))}}function Gi(e,t){if(t.length===0)return[m("p",{},`No training pair has “${e}”.`)];let n=t.map(({location:r,copies:s,source:i,target:a})=>{let l=s?` and ${s} ${s===1?"copy":"copies"}`:"",c=[m("span",{dir:"auto"},i),m("span",{dir:"auto"},...zi(a??"",e))];return m("li",{},...c,m("span",{class:"place"},r+l))});return[m("ol",{class:"pairs"},...n),m("p",{class:"small"},"The nearest pairs with this word, most similar first. Whether they taught it: regard blame --prove.")]}function zi(e,t){let n=e.indexOf(t);return n<0?[e]:[e.slice(0,n),m("mark",{},t),e.slice(n+t.length)]}function Xo(e,t,n){let o=e.session,r={text:e.text,model:o.model,against:e.against&&e.against.text!==e.text?e.against.text:"",against_model:o.against_model},s=m("p",{class:"small",role:"status"}),i=m("p",{class:"problem",role:"alert"}),a=o.models.length>1?"The same text, or another one":"Another text to compare with",l=f("Text","text","model",""),c=f("Compare with","against","against_model",a);c.hidden=!e.against;let d=m("button",{type:"button",onclick:b});g();let u=m("button",{type:"submit",class:"main"},"Look inside"),h=m("form",{class:"box","aria-label":"Enter another text",onsubmit:w},l,c,m("div",{class:"controls"},u,d,s),i),p=!1;function f(x,L,v,A){let M=m("textarea",{rows:1,"aria-label":x,placeholder:A,dir:"auto",spellcheck:"false",oninput:()=>{r[L]=M.value,T()},onkeydown:E=>{E.key!=="Enter"||E.shiftKey||E.isComposing||(E.preventDefault(),h.requestSubmit())}});M.value=r[L];let T=()=>M.rows=Math.min(6,Math.max(M.value.split(`
`).length,M.value.length/90));T();let k=o.models.map((E,I)=>[String(I),E]),$=E=>r[v]=Number(E),S=k.length>1?Se("Model",k,String(r[v]),$):null;return m("div",{class:"row"},M,S)}function b(){c.hidden=!c.hidden,g(),c.hidden||c.querySelector("textarea").focus()}function g(){d.textContent=c.hidden?"Compare with …":"Without comparison",d.setAttribute("aria-expanded",String(!c.hidden))}async function w(x){if(x.preventDefault(),p)return;p=!0,u.setAttribute("aria-disabled","true"),j(i);let L=Date.now(),v=()=>{let M=Math.floor((Date.now()-L)/1e3);s.textContent=M>0?`Looking inside … ${M} s`:"Looking inside …"};v();let A=setInterval(v,1e3);try{n(await t.look(c.hidden?{...r,against:"",against_model:r.model}:r))}catch(M){i.textContent=M.message}finally{clearInterval(A),s.textContent="",u.removeAttribute("aria-disabled"),p=!1}}return h}function Bn(e){let t=e.attention.find(n=>n.name==="decoder.cross");for(let n of e.hypotheses)n.link_heads??=t?[t.default_head]:[];for(let n of e.attention)n.default_head=Ke(e,[n])?.place??n.default_head;e.against&&Bn(e.against)}function Ke(e,t){let n=t.flatMap(r=>(e.ablation?.delta[r.name]??[]).flatMap((s,i)=>s.flatMap((a,l)=>a===null?[]:[{group:r,place:[i,l],delta:a}])));if(n.length===0)return null;let o=n.reduce((r,s)=>s.delta<r.delta?s:r);return o.delta<0?o:n.reduce((r,s)=>s.delta>r.delta?s:r)}var Ie=Float32Array.from({length:256},(e,t)=>(t/255)**2);function ft(e){return Math.round(Math.sqrt(Math.min(1,Math.max(0,e)))*255)}async function Be(e){let t=atob(e.data),n=new Uint8Array(t.length);for(let a=0;a<t.length;a++)n[a]=t.charCodeAt(a);let o=new Blob([n]).stream().pipeThrough(new DecompressionStream("deflate")),r=await new Response(o).arrayBuffer(),s={u8:()=>new Uint8Array(r),i8:()=>new Int8Array(r),i32:()=>new Int32Array(r),f32:()=>new Float32Array(r)}[e.dtype](),i=e.shape.reduce((a,l)=>a*l,1);if(s.length!==i)throw new Error(`A blob has ${s.length} numbers, its shape says ${i}.`);return{shape:e.shape,codes:s,scale:e.scale}}var ke=class{constructor(t,n,o=1/0){this.load=t;this.arrived=n;this.limit=o}load;arrived;limit;values=new Map;read(t){let n=this.entry(t);return n instanceof Error?void 0:n}has(t){return this.values.has(t)}problem(t){let n=this.values.get(t);return n instanceof Error?n.message:null}entry(t){if(this.values.has(t)){let n=this.values.get(t);return this.values.delete(t),this.values.set(t,n),n}this.values.set(t,void 0),this.values.size>this.limit&&this.values.delete(this.values.keys().next().value),this.load(t).catch(n=>n instanceof Error?n:new Error(String(n))).then(n=>{this.values.set(t,n),this.arrived()})}};function Qo(e){return e.format.startsWith("regard-film/")}function tn(e,t){return e.filter(n=>n.step<=t).length-1}function nn(e,t){return e===null||t===0?null:Math.exp(e/t)}function Yo(e,t,n,o,r){let s=h=>h.reduce((p,f)=>p*f,1),i=t.probes.slice(0,n).reduce((h,p)=>h+s(p.shape),0),[a,l,c,d]=t.probes[n].shape,u=o-(e.attention.layers-a);return u<0||r>=l||c===0?null:{start:i+(u*l+r)*c*d,rows:c,columns:d}}function Wn(e,t,n){let[o,r]={"decoder.cross":[t.probes[n].tokens,e.probes[n].tokens],"decoder.self":[t.probes[n].tokens,t.probes[n].tokens],"encoder.self":[e.probes[n].tokens,e.probes[n].tokens],"":[[],[]]}[e.attention.name],s=([i,a])=>({id:0,text:i,word:a,role:a===null?"special":"text"});return{rows:o.map(s),columns:r.map(s)}}var Nn=new WeakMap;function Zo(e){return Nn.has(e.maps)||Nn.set(e.maps,Be(e.maps)),Nn.get(e.maps)}var Jo=[137,80,78,71,13,10,26,10],qi=Uint32Array.from({length:256},(e,t)=>{for(let n=0;n<8;n++)t=t&1?3988292384^t>>>1:t>>>1;return t});function ji(e){let t=4294967295;for(let n of e)t=qi[(t^n)&255]^t>>>8;return~t>>>0}function er(e){let t=e.map(({png:a})=>Vi(a)),n=t[0][0].data,o=n.subarray(0,8),r=t[0].findIndex(({type:a})=>a==="IDAT"),s=[t[0][0],{type:"acTL",data:gt(e.length,0)},...t[0].slice(1,r)],i=0;return t.forEach((a,l)=>{if(a[0].data.join()!==n.join())throw new Error(`Frame ${l+1} has another size or color type.`);let{delay:c,isOver:d}=e[l],u=[gt(i++),o,gt(0,0,Math.round(c)<<16|1e3),[0,Number(d)]];s.push({type:"fcTL",data:Rt(u)});let h=a.filter(({type:p})=>p==="IDAT").map(p=>p.data);l===0?s.push({type:"IDAT",data:Rt(h)}):s.push({type:"fdAT",data:Rt([gt(i++),...h])})}),s.push({type:"IEND",data:new Uint8Array}),Rt([Jo,...s.flatMap(Ki)])}function Vi(e){let t=new DataView(e.buffer,e.byteOffset,e.byteLength),n=[];for(let o=Jo.length;o<e.length;){let r=o+8,s=r+t.getUint32(o);n.push({type:String.fromCharCode(...e.subarray(o+4,r)),data:e.subarray(r,s)}),o=s+4}return n}function Ki({type:e,data:t}){let n=Rt([Array.from(e,o=>o.charCodeAt(0)),t]);return[gt(t.length),n,gt(ji(n))]}function gt(...e){let t=new DataView(new ArrayBuffer(4*e.length));return e.forEach((n,o)=>t.setUint32(4*o,n)),new Uint8Array(t.buffer)}function Rt(e){let t=new Uint8Array(e.reduce((o,r)=>o+r.length,0)),n=0;for(let o of e)t.set(o,n),n+=o.length;return t}function Pt(e,t){let n=m("a",{href:URL.createObjectURL(t),download:e});n.click(),setTimeout(()=>URL.revokeObjectURL(n.href),1e3)}var tr={width:872,height:490},Dt=1,Ne=()=>Dt;function Xe(e,t=0){if(Dt===1)return Math.max(t,640,window.innerHeight-300);let n=e.getBoundingClientRect().top+window.scrollY;return Math.max(120,(window.innerHeight-n)/Dt-12)}function nr(e,t){let n=a=>{e.set({present:a}),document.fullscreenEnabled&&(a?document.documentElement.requestFullscreen().catch(()=>{}):document.fullscreenElement&&document.exitFullscreen().catch(()=>{}))},o=()=>{let{present:a}=e.state,{innerWidth:l,innerHeight:c}=window;Dt=a?Math.max(1,Math.min(l/tr.width,c/tr.height)):1,document.documentElement.classList.toggle("present",a),document.documentElement.style.setProperty("--zoom",String(Dt));let d=a?"Leave the presentation (Escape)":"Present (P)";r.textContent=a?"×":"Present",r.title=d,r.setAttribute("aria-label",d)},r=m("button",{type:"button",class:"presenter",onclick:()=>n(!e.state.present)});e.subscribe(a=>a.has("present")&&o());let s=()=>{e.state.present&&(o(),e.notify())};window.addEventListener("resize",s,{signal:t});let i=()=>document.fullscreenElement??e.set({present:!1});return document.addEventListener("fullscreenchange",i,{signal:t}),window.addEventListener("keydown",a=>{a.target.matches?.("input:not([type=checkbox],[type=range]), textarea, select")||a.ctrlKey||a.metaKey||a.altKey||(a.key.toLowerCase()==="p"?n(!e.state.present):a.key==="Escape"&&e.state.present&&!e.state.locked&&n(!1))},{capture:!0,signal:t}),o(),r}var be=class{constructor(t,n,o,r,s=(window.devicePixelRatio||1)*Ne()){this.font=r;let[i,a]=[Math.round(n*s),Math.round(o*s)];(t.width!==i||t.height!==a)&&(t.width=i,t.height=a,t.style.width=`${n}px`,t.style.height=`${o}px`),this.context=t.getContext("2d"),this.context.setTransform(s,0,0,s,0,0),this.context.clearRect(0,0,n,o)}font;context;rect(t,n,o,r,s){let i=new Path2D;s.radius?i.roundRect(t,n,o,r,s.radius):i.rect(t,n,o,r),this.draw(i,s)}path(t,n){this.draw(new Path2D(t),n)}text(t,n,o,r){let{context:s}=this;s.save(),s.translate(t,n),r.angle&&s.rotate(r.angle*Math.PI/180),s.font=`${r.weight??400} ${r.size??13}px ${this.font}`,s.fillStyle=r.fill,s.textAlign={start:"left",middle:"center",end:"right"}[r.anchor??"start"],s.textBaseline="middle",s.fillText(o,0,0),s.restore()}pixels(t,n,o,r,s){this.context.imageSmoothingEnabled=!1,this.context.drawImage(rr(s),t,n,o,r)}image(t,n,o,r,s){this.context.drawImage(t,n,o,r,s)}draw(t,n){let{context:o}=this;o.globalAlpha=n.opacity??1,n.fill&&(o.fillStyle=n.fill,o.fill(t)),n.stroke&&(o.strokeStyle=n.stroke,o.lineWidth=n.width??1,o.setLineDash(n.dash?n.dash.split(" ").map(Number):[]),o.stroke(t)),o.globalAlpha=1}},Un="http://www.w3.org/2000/svg",ot=class{element=document.createElementNS(Un,"svg");constructor(t,n,o,r){en(this.element,{xmlns:Un,width:t,height:n,viewBox:`0 0 ${t} ${n}`,"font-family":o}),r&&this.rect(0,0,t,n,{fill:r})}rect(t,n,o,r,s){this.add("rect",{x:t,y:n,width:o,height:r,rx:s.radius,...or(s)})}path(t,n){this.add("path",{d:t,...or(n)})}text(t,n,o,r){let s=this.add("text",{x:t,y:n,fill:r.fill,"font-size":r.size??13,"font-weight":r.weight??400,"text-anchor":r.anchor??"start","dominant-baseline":"central",transform:r.angle?`rotate(${r.angle} ${t} ${n})`:null});s.textContent=o}pixels(t,n,o,r,s){this.add("image",{x:t,y:n,width:o,height:r,href:rr(s).toDataURL("image/png"),preserveAspectRatio:"none",style:"image-rendering: pixelated"})}add(t,n){let o=document.createElementNS(Un,t);return en(o,n),this.element.append(o),o}};function or(e){return{fill:e.fill??"none",stroke:e.stroke??null,"stroke-width":e.stroke?e.width??1:null,"stroke-dasharray":e.dash??null,opacity:e.opacity??null}}function rr(e){let t=document.createElement("canvas");t.width=e.width,t.height=e.height;let n=new Uint8ClampedArray(e.data.buffer,e.data.byteOffset,e.data.byteLength);return t.getContext("2d").putImageData(new ImageData(n,e.width,e.height),0,0),t}var Xi={light:[[0,[255,255,255]],[90,[198,219,239]],[150,[107,174,214]],[205,[33,113,181]],[255,[8,38,92]]],dark:[[0,[20,22,27]],[90,[24,58,98]],[150,[33,105,172]],[205,[98,170,226]],[255,[226,241,255]]]},Gn=null;function ae(){let e=getComputedStyle(document.documentElement),t=s=>e.getPropertyValue(s).trim(),n=t("--scheme");if(Gn?.key===n)return Gn.theme;let o=Qi(Xi[n==="dark"?"dark":"light"]),r={page:t("--page"),ink:t("--ink"),muted:t("--muted"),rule:t("--rule"),accent:t("--accent"),hue:t("--hue"),minus:t("--minus"),tint:t("--tint"),font:t("--font"),ramp:o.map(Yi),pixels:Uint32Array.from(o,([s,i,a])=>(4278190080|a<<16|i<<8|s)>>>0)};return Gn={key:n,theme:r},r}function Qi(e){let t=[],n=new Set;for(let o=0;o<256;o++){let r=e.findIndex(([u])=>u>=o),[s,i]=e[Math.max(0,r-1)],[a,l]=e[r],c=a===s?1:(o-s)/(a-s),d=i.map((u,h)=>Math.round(u+c*(l[h]-u)));for(;n.has(d.join());)d[2]+=d[2]<128?1:-1;n.add(d.join()),t.push(d)}return t}function Yi([e,t,n]){return"#"+[e,t,n].map(o=>o.toString(16).padStart(2,"0")).join("")}function Qe(e,t,n){let o=(a,l)=>parseInt(a.slice(l,l+2),16),[r,s,i]=[1,3,5].map(a=>Math.round(o(e,a)+n*(o(t,a)-o(e,a))));return(4278190080|i<<16|s<<8|r)>>>0}function on(e){let[t,n,o]=[1,3,5].map(r=>{let s=parseInt(e.slice(r,r+2),16)/255;return s<=.04045?s/12.92:((s+.055)/1.055)**2.4});return .2126*t+.7152*n+.0722*o>.18?"#000000":"#ffffff"}var zn=null;function ge(e,t,n){return zn??=document.createElement("canvas").getContext("2d"),zn.font=`${t}px ${n}`,zn.measureText(e).width}function me(e,t,n,o){if(ge(e,t,n)<=o)return e;let r=Array.from(e);for(;r.length>1&&ge(r.join("")+"…",t,n)>o;)r.pop();return r.join("")+"…"}var Zi=2,Ye=24,Ji=560,ea=16384,ta="Made with Regard";function qn(){let e=s=>document.querySelector(s)?.textContent?.trim()??"",[t,n,o]=["header .input","header h1 bdi","header .sure"].map(e),r=`${t&&"→ "}${n}${o&&` (${o})`}`;return{title:e("#panel h2"),lines:[t,r].filter(Boolean)}}function jn(e,t,n,o=document.createElement("canvas"),r=Zi){let s=Math.max(e.width,Ji),i=[...bt(t.title,18,700,s,2,n),...t.lines.flatMap(f=>bt(f,14,400,s,3,n))],a=i.reduce((f,b)=>f+b.size*1.45,0)+12,l=Math.ceil(s+2*Ye),c=Math.ceil(a+e.height+22+2*Ye),d=Math.min(r,ea/Math.max(l,c)),u=new be(o,l,c,n.font,d);u.rect(0,0,l,c,{fill:n.page});let h=Ye;for(let{text:f,size:b,weight:g}of i)u.text(Ye,h+b*.7,f,{fill:n.ink,size:b,weight:g}),h+=b*1.45;let p=document.createElement("canvas");return e.draw(new be(p,e.width,e.height,n.font,d),n),u.image(p,Ye,Ye+a,e.width,e.height),u.text(Ye,c-Ye-2,ta,{fill:n.muted,size:12}),o}function sr(e,t){jn(t,qn(),ae()).toBlob(n=>n&&Pt(`${e}.png`,n),"image/png")}function ir(e,{width:t,height:n,draw:o}){let r=ae(),s=new ot(t,n,r.font,r.page);o(s,r);let i=new XMLSerializer().serializeToString(s.element);Pt(`${e}.svg`,new Blob([i],{type:"image/svg+xml"}))}function bt(e,t,n,o,r,s){let i=s.font,a=n>500?o/1.08:o,l=[];for(let c of e.split(/\s+/).filter(Boolean)){let d=l.at(-1),u=d===void 0?c:`${d} ${c}`;if(d!==void 0&&(l.length===r||ge(u,t,i)<=a)?l[l.length-1]=u:l.push(c),l.length===r&&ge(l[r-1],t,i)>a)break}return l.map(c=>({text:me(c,t,i,a),size:t,weight:n}))}var cr=60,na=4e6,oa=2e6,ra=1.5,sa=3e3,[ar,lr]=[16,24];function ur(e){let t=Math.max(1,Math.ceil((e-1)/(cr-1))),n=Array.from({length:Math.ceil((e-1)/t)},(o,r)=>r*t);return{stride:t,steps:[...n,e-1]}}async function ia(e,t){let n=ae(),{width:o,height:r,caption:s,draw:i,tell:a,delay:l}=e,{steps:c}=ur(e.count),d=c.map(b=>bt(a(b),ar,400,o,3,n)),u=Math.max(...d.map(b=>b.length)),h=r+12+u*lr,p=document.createElement("canvas"),f=p.getContext("2d",{willReadFrequently:!0});for(let b=Math.min(ra,Math.sqrt(oa/(o*h)));;b*=.7){let g=[],w=0,x=null;for(let[L,v]of c.entries()){if(await new Promise(k=>setTimeout(k)),!t(L,c.length))return null;jn({width:o,height:h,draw:k=>{i(v,k,n),d[L].forEach(({text:$},S)=>k.text(0,r+12+(S+.5)*lr,$,{fill:n.ink,size:ar}))}},s,n,p,b),x=aa(f,x);let M=await new Promise(k=>p.toBlob(k,"image/png"));if(!M)throw new Error("This browser cannot encode the picture.");if(w+=M.size,w>na&&b>.4)break;let T=new Uint8Array(await M.arrayBuffer());g.push({png:T,delay:L===c.length-1?sa:l,isOver:L>0})}if(g.length===c.length)return er(g)}}function aa(e,t){let n=e.getImageData(0,0,e.canvas.width,e.canvas.height),o=new Uint32Array(n.data.buffer),r=o.slice();for(let s=0;s<r.length;s++)r[s]|=4278190080,o[s]=t?.[s]===r[s]?0:r[s];return e.putImageData(n,0,0),r}function la(e,t){let{stride:n}=ur(t),o=n>1?` Too long for ${cr} frames: it has one step in ${n}.`:"";return`Saved: ${Math.max(.1,e/1e6).toFixed(1)} MB.${o}`}function rn(e){let t="Save animation",n=m("span",{class:"small",role:"status"}),o=m("button",{type:"button",class:"quiet",onclick:()=>{s()}},t),r="idle";async function s(){if(r=r==="idle"?"busy":"canceled",r!=="canceled"){j(n);try{let i=await e(),a=await ia(i,(l,c)=>(o.textContent=`Cancel (${l} of ${c})`,r==="busy"));a&&(Pt(`${i.name}.png`,new Blob([a],{type:"image/png"})),j(n,la(a.length,i.count)))}catch(i){j(n,`Not saved: ${i.message}`)}r="idle",o.textContent=t}}return m("span",{class:"animation slide-hidden"},o," ",n)}var ca=/[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g,ua={"\n":"↵","	":"⇥","\r":"␍"},ma=/[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff]/,mr=typeof Intl.Segmenter=="function"?new Intl.Segmenter:null;function Ft(e,t){if(e.length<=t)return e;let n=e.slice(0,t*12),o=mr?[...mr.segment(n)].map(r=>r.segment):Array.from(n);return o.length<=t&&n.length===e.length?e:o.slice(0,t-1).join("")+"…"}function Vn(e){let t=e.replace(ca,n=>ua[n]??`U+${n.charCodeAt(0).toString(16).toUpperCase().padStart(4,"0")}`);return ma.test(t)?`⁨${t}⁩`:t}function de(e,t=!1,n=16){if(!e)return"?";if(e.bytes)return`‹${Ft(e.bytes.toUpperCase(),n)}›`;let o=e.text.replace(/^ /,"");return o===""?"␣":(t&&/^[\p{L}\p{N}]/u.test(o)?"·":"")+Ft(Vn(Ft(o,n*2)),n)}var dr=({text:e})=>/[\n\r]/.test(e)&&e.trim()==="";function ze(e,t){let[n,o]=[e[t-1],e[t]];return t>0&&o.word!==null&&o.word===n.word&&!dr(o)&&!dr(n)}var pr="‹E2 82›: part of a character, written as bytes.";function hr(e){return Object.values(e.sequences).some(t=>t.some(n=>n.bytes))}function Kn(e){return e.every(t=>t.role==="special"||t.text.length<=1)}function rt(e,t=16){let n=!Kn(e);return e.map((o,r)=>de(o,n&&ze(e,r),t))}function we(e,t=400){let n=e.map(o=>o?o.bytes?"�":o.text:"?").join("");return Ft(Vn(n.trim()),t)}function Q(e,t=400){return Ft(Vn(e.replace(/\s*\n\s*/g," ")),t)}var ve={"encoder.self":"Encoder self-attention","decoder.self":"Decoder self-attention","decoder.cross":"Cross-attention"},fr={"encoder.self":"source attends to source","decoder.self":"each token attends to earlier ones","decoder.cross":"generated token attends to source"};function sn(e,t){if(t.columns==="source"&&e.picture){let[o,r]=e.picture.kind==="image"?["patch","patches"]:["time step","time steps"];return t.rows==="source"?`Which ${r} each ${o} reads`:`Which ${r} it reads for each ${e.picture.kind==="image"?"word":"token"}`}let n=Kn(e.sequences[t.columns]??[])?"characters":"words";return t.name==="decoder.cross"?t.row_start>0?`Which source ${n} it reads`:"Which keys it reads":t.name==="decoder.self"?`Which earlier ${n} it reads`:`Which ${n} each ${n.slice(0,-1)} reads`}function an(e,t,n){return`layer ${t+1} of ${e.layers}, head ${n+1} of ${e.heads}`}function wt(e,t,n){return`${ve[e]}, layer ${t+1}, head ${n+1}`}var Ht=()=>matchMedia("(any-hover: hover)").matches;function Ee(e,t,n="Click to pin it"){return Ht()?`Point at ${e} ${t}. ${n}; arrow keys move.`:`Tap ${e} ${t}.`}function ln(e,t){return e.attention.find(n=>n.name===t)??e.attention[0]}function Fe(e,t){return e&&e.row<t.rows.length&&(e.column??0)<t.columns.length?e:null}var ce=class{base=m("canvas",{"aria-hidden":"true"});overlay=m("canvas",{class:"overlay","aria-hidden":"true"});element;constructor(t,n={}){this.element=m("div",{class:"stage",tabindex:0,role:"application","aria-label":t,...n},this.base,this.overlay)}draw(t,n,o){let r=ae();this.element.style.width=`${t}px`,this.element.style.height=`${n}px`,o(new be(this.base,t,n,r.font),r)}drawOverlay(t,n,o){let r=ae();o(new be(this.overlay,t,n,r.font),r)}describe(t,n,o){Object.assign(this.element.dataset,{left:t,top:n,cell:o})}locate(t){let n=this.base.getBoundingClientRect();return{x:(t.clientX-n.left)/Ne(),y:(t.clientY-n.top)/Ne()}}};function he(e,t,n){let o=()=>({width:t().width,height:t().height,draw:n}),r=(s,i,a)=>m("button",{type:"button",class:"quiet","aria-label":i,onclick:a},s);return m("span",{class:"saves"},r("Save as PNG","Save as PNG",()=>sr(e(),o())),r("SVG","Save as SVG",()=>ir(e(),o())))}function ie(e){return e>=.01?e.toFixed(2):e===0?"0":e<.001?"< 0.001":e.toFixed(3)}function Y(e){let t=e*100;if(t>0&&t<.01)return"< 0.01 %";let n=t>=99.95||t===0?0:t>=99?1:t>=10?0:t>=1?1:2;return`${t.toFixed(n)} %`}function V(e){return`“${e}”`}function qe(e,t){let n=e.sequences[t.rows]??[],o=e.sequences[t.columns]??[];return{rows:n.slice(t.row_start,t.row_start+t.row_count),columns:o.slice(0,t.column_count)}}function fe(e,t,n){let o=rt(e),r=[];return e.forEach((s,i)=>{let a=s.role==="special";if(!(a&&!n))if(t&&ze(e,i)&&r.length>0){let l=r[r.length-1];l.members.push(i),l.label=we(l.members.map(c=>e[c]),16)}else r.push({label:o[i],special:a,members:[i]})}),r}function je(e,t,n,o){let r=[...n,...o].every(u=>u.members.length===1),s=new Uint8Array(n.length*o.length);if(r){let u=o.length===t;n.forEach((h,p)=>{let f=h.members[0]*t;u?s.set(e.subarray(f,f+t),p*t):o.forEach((b,g)=>s[p*o.length+g]=e[f+b.members[0]])})}let i=r?null:new Float32Array(s.length);i&&n.forEach((u,h)=>o.forEach((p,f)=>{let b=0;for(let g of u.members)for(let w of p.members)b+=Ie[e[g*t+w]];i[h*o.length+f]=b/u.members.length,s[h*o.length+f]=ft(b/u.members.length)}));let a=new Map,l=(u,h)=>{let p=u*o.length+h;return a.get(u)?.values[h]??(i?i[p]:Ie[s[p]])};return{rows:n,columns:o,codes:s,value:l,hidden:u=>{if(a.has(u))return a.get(u).hidden;let[h,p]=[0,0];for(let f of n[u].members)for(let b=0;b<t;b++)h+=Ie[e[f*t+b]];for(let f=0;f<o.length;f++)p+=l(u,f);return Math.max(0,h/n[u].members.length-p)},refine:(u,h)=>{let p=g=>h.reduce((w,x)=>w+x[g],0)/h.length,f=o.map(g=>g.members.reduce((w,x)=>w+p(x),0)),b=h.flat().reduce((g,w)=>g+w,0)/h.length;a.set(u,{values:f,hidden:b-f.reduce((g,w)=>g+w,0)})},isExact:u=>a.has(u)}}function We(e,t,n){let o=[];for(let r=0;r<e.columns.length;r++){let s=e.value(t,r);o.length===n&&s<=o[n-1].weight||(o.push({column:r,weight:s}),o.sort((i,a)=>a.weight-i.weight),o.length>n&&o.pop())}return o}function cn(e,t,n,o,r=1/0,s=1/0,i=!1){let a=Math.min(n,Math.max(1,Math.floor(r))),l=Math.min(t,Math.max(1,Math.floor(s))),c=new Uint32Array(a*l),d=new Uint8Array(a),u=Uint32Array.from({length:n},(h,p)=>Math.floor(p*a/n));for(let h=0;h<l;h++){let[p,f]=[Math.floor(h*t/l),Math.max(Math.floor((h+1)*t/l),1)];d.fill(0);let b=1;for(let w=p;w<Math.max(f,p+1);w++){let x=w*n;for(let L=0;L<n;L++){let v=e[x+L];v>d[u[L]]&&(d[u[L]]=v),v>b&&(b=v)}}let g=i?255/b:1;for(let w=0;w<a;w++)c[h*a+w]=o[Math.round(d[w]*g)]}return{width:a,height:l,data:c}}var da=-53,[gr,pa]=[Math.sin(53*Math.PI/180),Math.cos(53*Math.PI/180)],Xn=140,_t=({label:e})=>e.replace(/^patch (?=\d+,\d+$)/,"");function He(e,t,n,o=640){let[r,s]=[e.rows.length,e.columns.length];if(Math.max(r,s)>96){let w=Math.min(6,(t-14)/s,Math.max(o,900)/r);return{cell:w,left:12,top:12,width:s*w+14,height:r*w+14,labeled:!1,level:!1,size:0}}let i=t<600?12:13,a=w=>Math.min(Xn,Math.max(12,...w.map(x=>ge(x,i,n.font)))),l=a(e.rows.map(_t))+10,c=a(e.columns.map(_t)),d=e.columns.slice(-6).map((w,x,L)=>a([_t(w)])*pa-(L.length-1-x)*16),u=Math.max(0,...d)+6,h=(t-l-u)/Math.max(s,1),p=Math.min(Math.max(s,r)<=6?120:96,(o-c*gr-24)/r),f=Math.max(t<600?18:16,Math.floor(Math.min(p,h))),b=c<=f-4,g=b?24:c*gr+16;return{cell:f,left:l,top:g,width:l+s*f+u,height:g+r*f+4,labeled:!0,level:b,size:i}}function Ae(e,t,n,o,r={}){let{cell:s,left:i,top:a}=n,[l,c]=[t.rows.length,t.columns.length],[d,u]=[c*s,l*s],h=cn(t.codes,l,c,o.pixels,d*(r.pixelRatio??1),u*(r.pixelRatio??1),r.stretched);e.pixels(i,a,d,u,h),e.rect(i-.5,a-.5,d+1,u+1,{stroke:o.rule}),Ot(e,t,n,o,null),r.numbers&&t.rows.forEach((p,f)=>br(e,t,n,o,f,r))}function br(e,t,n,o,r,{stretched:s}={}){let{cell:i,left:a,top:l}=n;if(!n.labeled||i<26)return;let c=t.codes.subarray(r*t.columns.length,(r+1)*t.columns.length),d=s?255/Math.max(1,...c):1;t.columns.forEach((u,h)=>{let p=t.value(r,h);if(p<.005)return;let f=on(o.ramp[Math.round(c[h]*d)]),b=p.toFixed(2).replace(/^0/,""),g=i>50?14:11;e.text(a+(h+.5)*i,l+(r+.5)*i,b,{fill:f,size:g,anchor:"middle"})})}function Ot(e,t,n,o,r){if(!n.labeled)return;let s=i=>i?o.accent:o.muted;t.rows.forEach((i,a)=>wr(e,t,n,o,a,s(a===r?.row))),t.columns.forEach((i,a)=>xr(e,t,n,o,a,s(a===r?.column)))}function Ze(e,t,n,o,r,s,i={}){let{cell:a,left:l,top:c}=n,d=t.columns.length*a,u=c+r.row*a,h=s?2.5:1.5;if(!n.labeled){let p=l+((r.column??0)+.5)*a;e.path(`M${l} ${u+a/2}h${d}`,{stroke:o.accent,width:1}),r.column!==null&&(e.path(`M${p} ${c}v${t.rows.length*a}`,{stroke:o.accent,width:1,opacity:.5}),e.rect(p-5,u+a/2-5,10,10,{stroke:o.accent,width:h,radius:5}));return}i.numbers||br(e,t,n,o,r.row,i),e.rect(l,u,d,a,{stroke:o.accent,width:h}),wr(e,t,n,o,r.row,o.accent),r.column!==null&&(e.rect(l+r.column*a,u,a,a,{stroke:o.accent,width:h+.5}),xr(e,t,n,o,r.column,o.accent))}function Ue(e,t,n,o){let r=Math.floor((o-t.top)/t.cell),s=Math.floor((n-t.left)/t.cell);return r<0||r>=e.rows.length||s>=e.columns.length?null:{row:r,column:s<0?null:s}}function un(e,t,n,o=1){let r=i=>o!==null?ie(i*o).replace("1.00","1"):i===1?"row's largest":i===.5?"":`${i*100} %`,s=Uint32Array.from({length:256},(i,a)=>t.pixels[a]);e.pixels(0,2,n,10,{width:256,height:1,data:s}),e.path(`M0 1.5h${n}`,{stroke:t.rule});for(let i of[0,.1,.25,.5,1]){let a=Math.sqrt(i)*(n-1)+.5;e.path(`M${a} 12v4`,{stroke:t.muted});let l=i===0?"start":i===1?"end":"middle";e.text(i===0?0:a,23,r(i),{fill:t.muted,size:11,anchor:l})}}function wr(e,t,n,o,r,s){let i=me(_t(t.rows[r]),n.size,o.font,Xn),a=n.top+(r+.5)*n.cell;e.text(n.left-6,a,i,{fill:s,size:n.size,anchor:"end"})}function xr(e,t,n,o,r,s){let i=me(_t(t.columns[r]),n.size,o.font,Xn),a=n.left+(r+.5)*n.cell;n.level?e.text(a,n.top-12,i,{fill:s,size:n.size,anchor:"middle"}):e.text(a,n.top-7,i,{fill:s,size:n.size,angle:da})}var mn=["","7 4","2 3","9 3 2 3"],ha={loss:"Loss",learning_rate:"Learning rate",bleu:"BLEU",chrf:"chrF",f1:"F1",bits_per_byte:"Bits per byte"};function xt(e){return ha[e]??e.charAt(0).toUpperCase()+e.slice(1).replaceAll("_"," ")}function dn(e){let t=e.runs.flatMap(n=>[...Object.keys(n.validation),...Object.keys(n.training)]);return[...new Set(["loss",...t])]}function yt(e,t){return e.runs.flatMap((n,o)=>{let r=mn[o%mn.length];return[{curve:n.training[t],dash:r,dots:!1},{curve:n.validation[t],dash:r,dots:!0}].filter(({curve:i})=>i?.steps.length>0)})}function yr(e,t,n){let o=(t-e)/Math.max(n,1);if(!(o>0))return[e];let r=10**Math.floor(Math.log10(o)),s=[1,2,5,10].map(a=>a*r).find(a=>a>=o*.999),i=[];for(let a=Math.ceil(e/s-1e-9);a*s<=t+s*1e-9;a++)i.push(a*s);return i}function kr(e,t,n,o,r){let s=e.flatMap(({curve:g})=>g.values.filter(w=>w!==null)),[i,a]=[Math.min(...s),Math.max(...s)];s.length===0&&([i,a]=[0,1]),i===a&&([i,a]=[i-Math.abs(i||1)*.1,a+Math.abs(a||1)*.1]);let[l,c,d,u]=[56,14,10,26],h=Math.max(t,1),p=n?g=>Math.log2(g+1)/Math.log2(h+1):g=>g/h,f=[0,...Array.from({length:9},(g,w)=>10**w)].filter(g=>g<=h),b={x:o-l-c,y:r-d-u};return{width:o,height:r,left:l,right:c,top:d,bottom:u,x:g=>l+p(g)*b.x,y:g=>d+(a-g)/(a-i)*b.y,xTicks:n?f:yr(0,h,Math.max(2,Math.floor(b.x/110))),yTicks:yr(i,a,4)}}function pn(e,t,n,o,r){let s=o.height-o.bottom;for(let a of o.yTicks){let l=o.y(a);e.path(`M${o.left} ${l}H${o.width-o.right}`,{stroke:t.rule}),e.text(o.left-8,l,fa(a),{fill:t.muted,size:12,anchor:"end"})}for(let a of o.xTicks){let l=o.x(a)>o.width-40?"end":"middle",c=Math.min(o.x(a),o.width-2);e.text(c,s+17,a.toLocaleString("en"),{fill:t.muted,size:12,anchor:l})}e.path(`M${o.left} ${s}H${o.width-o.right}`,{stroke:t.muted});for(let a of r)e.path(`M${o.x(a)} ${s}v5`,{stroke:t.muted});let i=n.some(a=>a.dots);for(let{curve:a,dash:l,dots:c}of n){let d=a.steps.flatMap((h,p)=>{let f=a.values[p];return f===null?[]:[`${o.x(h).toFixed(1)} ${o.y(f).toFixed(1)}`]});if(d.length===0)continue;let u=i&&!c;if(e.path(`M${d.join("L")}`,{stroke:t.hue,width:u?1.2:2.2,opacity:u?.45:1,dash:l}),c&&d.length<=80)for(let h of d){let[p,f]=h.split(" ").map(Number);e.rect(p-3,f-3,6,6,{fill:t.hue,radius:3})}}}function hn(e,t,n,o){let r=n.x(o);e.path(`M${r} ${n.top}V${n.height-n.bottom+6}`,{stroke:t.accent,width:2})}function vr(e,t){let n=null;return e?.steps.forEach((o,r)=>{o<=t&&(n=e.values[r])}),n}function fa(e){return e!==0&&(Math.abs(e)<.001||Math.abs(e)>=1e5)?e.toExponential(0):String(Number(e.toPrecision(4)))}function fn(e,t){let[n,o,r]=[0,e.length,t.length];for(;n<o&&n<r&&e[n]===t[n];)n++;for(;o>n&&r>n&&e[o-1]===t[r-1];)[o,r]=[o-1,r-1];let[s,i]=[o-n,r-n],a=s*i<=4e6,l=i+1,c=a?new Uint16Array((s+1)*l):null;if(c)for(let p=s-1;p>=0;p--)for(let f=i-1;f>=0;f--)c[p*l+f]=e[n+p]===t[n+f]?c[(p+1)*l+f+1]+1:Math.max(c[(p+1)*l+f],c[p*l+f+1]);let d=Array.from({length:n},(p,f)=>({kind:"same",a:f,b:f})),[u,h]=[0,0];for(;u<s||h<i;)c&&u<s&&h<i&&e[n+u]===t[n+h]?d.push({kind:"same",a:n+u++,b:n+h++}):u<s&&(!c||h===i||c[(u+1)*l+h]>=c[u*l+h+1])?d.push({kind:"removed",a:n+u++}):d.push({kind:"added",b:n+h++});for(let p=0;o+p<e.length;p++)d.push({kind:"same",a:o+p,b:r+p});return d}var ga="\\p{sc=Han}\\p{sc=Hiragana}\\p{sc=Katakana}\\p{sc=Thai}\\p{sc=Lao}\\p{sc=Khmer}",ba=new RegExp(`\\s*(?:(?:(?![${ga}])[\\p{L}\\p{M}\\p{N}_'’-])+|\\S)`,"gu");function $r(e){return e.match(ba)??[]}function kt(e,t){let[n,o]=[$r(e),$r(t)],r=s=>s.map(i=>i.trim());return fn(r(n),r(o)).map(s=>({kind:s.kind,text:s.kind==="removed"?n[s.a]:o[s.b]}))}function Mr(e){let t=n=>e.filter(o=>o.kind===n&&/[\p{L}\p{N}]/u.test(o.text)).length;return Math.max(t("removed"),t("added"))}var[Qn,gn]=[120,30];function Yn(e,t,n){let[o,{reference:r,reference_length:s}]=[e.frames[t].probes[n],e.probes[n]],i=(d,u)=>d===null?"":`${Y(d)}${u>1?" per token":""}`,a=i(nn(o.logprob,o.length),o.length),l=i(nn(o.reference_logprob,s),s),c=r!==""&&o.output.trim()===r.trim();return[a&&`Output ${a}`,c?"equal to the reference":l&&`reference ${l}`].filter(Boolean).join(" · ")}function Lr(e){let t=m("div",{class:"examples",role:"group","aria-label":"Examples"}),n=[],o=null;function r(i){o=i,n=i.probes.map((a,l)=>{let c=m("strong",{dir:"auto"}),d=m("span",{class:"small"}),u=m("canvas",{"aria-hidden":"true",title:"Probability of the reference over the training"}),h=m("button",{type:"button",class:"example",onclick:()=>e.set({probe:l})},m("span",{class:"source",dir:"auto"},Q(a.text,160)),c,a.reference?m("span",{class:"small",dir:"auto"},`Reference: ${Q(a.reference,160)}`):null,m("span",{class:"numbers"},u,d));return{output:c,numbers:d,line:u,button:h}}),j(t,...n.map(a=>a.button))}function s(i){o!==i&&r(i);let{frame:a,probe:l}=e.state;n.forEach((c,d)=>{let u=i.frames[a].probes[d].output,h=a>0?i.frames[a-1].probes[d].output:u,f=kt(h.slice(0,2e3),u.slice(0,2e3)).filter(b=>b.kind!=="removed").map(b=>b.kind==="added"?m("mark",{},Q(b.text,60)):Q(b.text,60));j(c.output,...u.trim()===""?[m("span",{class:"small"},"(nothing)")]:f),c.numbers.textContent=Yn(i,a,d),c.button.setAttribute("aria-pressed",String(d===l)),wa(c.line,i,d,a)})}return{element:t,update:s,reset:()=>o=null}}function wa(e,t,n,o){let r=ae(),s=t.probes[n].reference_length,i=t.frames.map(h=>nn(h.probes[n].reference_logprob,s));if(e.hidden=i.every(h=>h===null),e.hidden)return;let a=new be(e,Qn,gn,r.font),l=h=>3+h/Math.max(1,i.length-1)*(Qn-6),c=h=>gn-3-h*(gn-6),d=i.flatMap((h,p)=>h===null?[]:[`${l(p).toFixed(1)} ${c(h).toFixed(1)}`]);a.path(`M0 ${gn-2.5}H${Qn}`,{stroke:r.rule}),a.path(`M${d.join("L")}`,{stroke:r.hue,width:1.6});let u=i[o];u!==null&&a.rect(l(o)-3,c(u)-3,6,6,{fill:r.accent,radius:3})}var Zn={"decoder.cross":"Which source words it reads","decoder.self":"Which earlier words it reads","encoder.self":"Which words each word reads","":""};function Jn(e,t,n,o){let[r,s]=[[],[]],i=(a,l)=>Array.from({length:Math.max(a.length,l.length)},(c,d)=>{let[u,h]=[a[d],l[d]];return!h||u&&u.label.length>=h.label.length?u:h});for(let a of e.frames){let l=Wn(e,a,t),c=a.probes[t].shape;r=i(r,fe(l.rows.slice(0,c[2]),!1,!0)),s=i(s,fe(l.columns.slice(0,c[3]),!1,!0))}return He({rows:r,columns:s},n,ae(),o)}async function eo(e,t,n,o,r){let s=Yo(e,t,n,o,r),{codes:i}=await Zo(t);if(!s)return null;let a=Wn(e,t,n),l=i.subarray(s.start,s.start+s.rows*s.columns),c=fe(a.rows.slice(0,s.rows),!1,!0);return je(l,s.columns,c,fe(a.columns.slice(0,s.columns),!1,!0))}function Tr(e){let t=m("h2"),n=m("div",{class:"head-grid",role:"group","aria-label":"Layers and heads"}),o=m("p",{class:"readout",role:"status"}),r=new ce("Attention of the chosen head",{role:"img",tabindex:null}),s=m("div",{class:"scroller",tabindex:0,role:"region","aria-label":"Map"},r.element),i=m("div",{class:"detail"},t,n,o,s),[a,l]=[null,null],c=[],d=0;function u(g){let{name:w,layers:x,heads:L}=g.attention,v=w==="decoder.cross"?x:Math.min(x,1);c=[];let A=Array.from({length:v},(M,T)=>x-v+T).map(M=>[m("span",{class:"small"},`layer ${M+1}`),...Array.from({length:L},(T,k)=>{let $=`layer ${M+1}, head ${k+1}`,E=m("button",{type:"button","aria-label":$,onclick:()=>e.set({layer:M,head:k})},String(k+1));return c.push({button:E,layer:M,head:k}),E})]);n.style.gridTemplateColumns=`max-content repeat(${L}, max-content)`,j(n,...A.flat())}let h=null,p=null;async function f(g){if(i.hidden=g.attention.layers===0,i.hidden)return;let{frame:w,probe:x,layer:L,head:v}=e.state;p!==g&&(p=g,u(g));for(let $ of c)$.button.setAttribute("aria-pressed",String($.layer===L&&$.head===v));t.textContent=Zn[g.attention.name];let A=i.clientWidth;(h?.film!==g||h.probe!==x||h.width!==A)&&(h={film:g,probe:x,width:A,layout:Jn(g,x,Math.max(240,A-8||560))});let M=g.frames[w],T=++d,k=await eo(g,M,x,L,v);T===d&&(l=h.layout,a=k,r.draw(l.width,l.height,($,S)=>{a&&Ae($,a,l,S,{pixelRatio:window.devicePixelRatio})}),r.describe(l.left,l.top,l.cell),r.element.dataset.frame=String(w),b(null))}function b(g){let w=a&&l&&g&&Ue(a,l,r.locate(g).x,r.locate(g).y);if(l&&r.drawOverlay(l.width,l.height,(x,L)=>{w&&Ze(x,a,l,L,w,!1)}),!a)o.textContent="The map of this head is too large for the film.";else if(w){let x=We(a,w.row,3).map(({column:L,weight:v})=>`${V(a.columns[L].label)} ${ie(v)}`);o.textContent=`${V(a.rows[w.row].label)} reads ${x.join(", ")}.`}else o.textContent=Ht()?"Point at a row to see what it reads.":"Tap a row to see what it reads."}return r.element.addEventListener("pointermove",b),r.element.addEventListener("pointerdown",b),r.element.addEventListener("pointerleave",()=>b(null)),{element:i,update:f}}var Sr=236,st={width:520,height:200},to=40,Er={width:460,height:420};function no({step:e,loss:t}){let n=t===null?"before the first step":`loss ${t.toFixed(3)}`;return`Step ${e.toLocaleString("en")} · ${n}`}async function Ar({doc:e,state:t},n,o,r,s){let{probe:i,layer:a,head:l,metric:c}=t,d=await Promise.all(n.frames.map(g=>eo(n,g,i,a,l))),u=d.some(g=>g!==null),h=Jn(n,i,Er.width,Er.height),p={...h,left:h.left+st.width+to,top:h.top+32},f=ya(n,i,ae()),b=`${Zn[n.attention.name]} (layer ${a+1}, head ${l+1})`;return{name:"film",caption:{title:Q(e.text,160),lines:r},width:st.width+(u?to+Math.max(h.width,320):0),height:Math.max(f.bottom,u?h.height+36:0),count:n.frames.length,delay:s,draw:(g,w,x)=>{xa(w,x,e,n,o,c,n.frames[g].step),f.draw(g,w),u&&(w.text(st.width+to,10,b,{fill:x.muted,size:13}),d[g]&&Ae(w,d[g],p,x,{pixelRatio:1.5}))},tell:g=>no(n.frames[g])}}function xa(e,t,n,o,r,s,i){let a=o.frames.map(c=>c.step);pn(e,t,yt(n,s),r,a),hn(e,t,r,i);let l={fill:t.muted,size:13,anchor:"end"};e.text(r.width-r.right,r.height+12,`${xt(s)} by step`,l)}function ya(e,t,n){let{text:o,reference:r}=e.probes[t],s=e.frames.map(p=>p.probes[t].output.trim()||"(nothing)"),i=(p,f,b)=>bt(Q(p,300),f,400,st.width,b,n),a=i(o,14,2),l=s.map(p=>i(p,19,3)),c=r?i(`Reference: ${r}`,13,2):[],d=Sr+a.length*20+6,u=d+Math.max(...l.map(p=>p.length))*27+6,h=u+c.length*19;return{bottom:h+20,draw(p,f){let b=(g,w,x,L,v)=>g.forEach(({text:A},M)=>f.text(0,w+(M+.5)*x,A,{fill:L,size:v}));b(a,Sr,20,n.muted,14),b(l[p],d,27,n.ink,19),b(c,u,19,n.muted,13),b([{text:Yn(e,p,t)}],h,19,n.muted,13)}}}function bn({film:e}){let[t,n]=e?.default_head??[0,0];return{frame:(e?.frames.length??1)-1,probe:0,layer:t,head:n,metric:"loss",isLog:e!==null}}function Cr(e,t,n){let r=[["step",n.film?.frames[e.frame]?.step??0,e.frame!==t.frame],["example",e.probe+1,e.probe!==t.probe],["layer",e.layer+1,e.layer!==t.layer||e.head!==t.head],["head",e.head+1,e.layer!==t.layer||e.head!==t.head],["curve",encodeURIComponent(e.metric),e.metric!==t.metric],["axis",e.isLog?"log":"linear",e.isLog!==t.isLog]].filter(([,,s])=>s).map(([s,i])=>`${s}=${i}`);return`#film${r.length?`?${r.join("&")}`:""}`}function oo(e,t){let n=bn(t),{film:o}=t,r=new URLSearchParams(e.split("?")[1]??""),s=(a,l)=>{let c=Number(r.get(a))-1;return r.has(a)&&Number.isInteger(c)&&c>=0&&c<l?c:null};if(o){let a=tn(o.frames,Number(r.get("step")));/^\d+$/.test(r.get("step")??"")&&a>=0&&(n.frame=a),n.probe=s("example",o.probes.length)??n.probe;let[l,c]=[s("layer",o.attention.layers),s("head",o.attention.heads)];l!==null&&c!==null&&Object.assign(n,{layer:l,head:c})}let i=r.get("curve");return i&&dn(t).includes(i)&&(n.metric=i),["log","linear"].includes(r.get("axis")??"")&&(n.isLog=r.get("axis")==="log"),n}var Rr=`#panel > section > .controls {
  margin-top: 16px;
}
.scrubber-row {
  display: flex;
  gap: 14px;
  align-items: center;
  flex-wrap: wrap;
  margin: 10px 0 2px;
}
.scrubber-row button {
  min-width: 76px;
}
.scrubber {
  flex: 1 1 240px;
  accent-color: var(--accent);
  margin: 0;
  height: 28px;
}
.scrubber-row output {
  min-width: 15em;
}
.shots {
  display: grid;
  grid-template-columns: minmax(280px, 1fr) minmax(0, 1.2fr);
  gap: 32px;
  align-items: start;
  margin-top: 16px;
}
.examples {
  display: grid;
  gap: 8px;
}
.example {
  display: grid;
  gap: 2px;
  justify-items: start;
  text-align: start;
  padding: 8px 12px;
  overflow-wrap: anywhere;
}
.example[aria-pressed="true"] {
  border-color: var(--accent);
  box-shadow: 0 0 0 1px var(--accent);
}
.example .source {
  color: var(--muted);
}
.example strong {
  font-weight: 500;
  font-size: 17px;
}
.example mark {
  background: color-mix(in srgb, var(--hue) 22%, var(--page));
  color: inherit;
  border-radius: 3px;
}
.example .numbers {
  display: flex;
  gap: 10px;
  align-items: center;
  flex-wrap: wrap;
}
@media (max-width: 760px) {
  .shots {
    grid-template-columns: minmax(0, 1fr);
    gap: 18px;
  }
  .scrubber {
    flex-basis: 100%;
    order: 1;
  }
}
`;var Pr=300,va=4e3;function Fr(e,t){let n={doc:e,state:oo(location.hash,e),set(P){n.state={...n.state,...P},D(),y.changed()}},o,r=m("p",{class:"small",role:"status"}),s=m("div",{class:"controls"}),i=new ce("Curves of the run",{role:"img",tabindex:null}),a=m("p",{class:"small"}),l=m("input",{type:"range",min:0,class:"scrubber","aria-label":"Step of the training"}),c=m("button",{type:"button",onclick:()=>o?T():k()},"Play"),d=m("output",{class:"small"}),u=m("p",{class:"small"}),h=Lr(n),p=Tr(n),f=rn(()=>{let P=$(st.width,st.height);return Ar(n,n.doc.film,P,Dr(n.doc),Pr)}),b=m("div",{class:"scrubber-row"},c,l,d,f),g=m("div",{class:"shots"},h.element,p.element),w=m("div"),x=m("footer",{class:"small"},"Made with Regard: ",m("code",{},"regard look RUN")),L=m("div",{id:"panel"},m("section",{"aria-label":"Training"},s,i.element));L.firstElementChild.append(a,b,u,g),j(t,m("header",{},m("div",{},m("h1",{},Q(e.text,160)),r,w)),m("main",{},L,x));let v=()=>n.doc.film?.frames??[],A=P=>n.set({frame:Math.max(0,Math.min(v().length-1,P))}),M=()=>matchMedia("(prefers-reduced-motion: reduce)").matches;function T(){clearInterval(o),o=void 0,c.textContent="Play"}function k(){if(M())return A(n.state.frame+1);n.state.frame>=v().length-1&&A(0),c.textContent="Pause",o=setInterval(()=>{A(n.state.frame+1),n.state.frame>=v().length-1&&T()},Pr)}l.addEventListener("input",()=>{T(),A(Number(l.value))}),window.addEventListener("keydown",P=>{let _=P.target;if(!v().length||P.ctrlKey||P.metaKey||P.altKey||_.closest("select, .scroller"))return;if(P.key===" "&&!_.closest("button"))return P.preventDefault(),o?T():k();let[N,K]=[n.state.frame,v().length-1],G={ArrowLeft:N-1,ArrowRight:N+1,Home:0,End:K}[P.key];G!==void 0&&(P.preventDefault(),T(),A(G))}),i.element.addEventListener("click",P=>{if(!v().length)return;let{x:_}=i.locate(P),N=K=>Math.abs(S().x(v()[K].step)-_);T(),A(v().reduce((K,G,J)=>N(J)<N(K)?J:K,0))});function $(P,_){let{doc:N,state:K}=n,G=yt(N,K.metric),J=N.runs.flatMap(W=>[...Object.values(W.training),...Object.values(W.validation)]),O=Math.max(1,...J.map(W=>W.steps.at(-1)??0),v().at(-1)?.step??0);return kr(G,O,K.isLog,P,_)}let S=()=>$(Math.max(260,(L.clientWidth||800)-4),window.innerWidth<760?170:220);function E(){let{doc:P,state:_}=n,N=S(),K=v().map(G=>G.step);i.draw(N.width,N.height,(G,J)=>pn(G,J,yt(P,_.metric),N,K)),i.drawOverlay(N.width,N.height,(G,J)=>{v().length&&hn(G,J,N,v()[_.frame].step)}),i.element.setAttribute("aria-label",`${xt(_.metric)} by step`)}function I(){let{doc:P,state:_}=n,N=dn(P).map(G=>[G,xt(G)]),K=[["log","logarithmic"],["linear","linear"]];j(s,Se("Curve",N,_.metric,G=>n.set({metric:G})),Se("Steps",K,_.isLog?"log":"linear",G=>n.set({isLog:G==="log"})))}let F=null;function D(){let{doc:P,state:_}=n;(F?.doc!==P||F.metric!==_.metric||F.isLog!==_.isLog)&&(F={doc:P,metric:_.metric,isLog:_.isLog},s.contains(document.activeElement)||I(),j(r,...Dr(P).flatMap((G,J)=>[J>0&&m("br"),G])),j(w,...P.notes.map(G=>m("p",{class:"note"},Q(G)))),a.textContent=$a(P,_.metric)),E();let{film:N}=P;for(let G of[b,u,g])G.hidden=!N;if(!N)return;let K=N.frames[_.frame];Object.assign(l,{max:String(N.frames.length-1)}),l.value=String(_.frame),f.hidden=N.frames.length<2,d.textContent=no(K),l.setAttribute("aria-valuetext",d.textContent),u.textContent=Ht()?"Arrow keys move, Space plays. Marked words are new since the frame before.":"",h.update(N),p.update(N)}let y=Jt("#film",()=>Cr(n.state,bn(n.doc),n.doc),P=>{n.state=oo(P,n.doc),F=null,D()});async function C(){let{doc:P,state:_}=n,N=new URL("document",location.href);N.searchParams.set("version",P.version);let K=await fetch(N).catch(()=>null),G=K?.ok?await K.json():null;if(!G?.runs)return;let J=P.film?.frames[_.frame]?.step??0,O=_.frame>=v().length-1,W=tn(G.film?.frames??[],J);n.doc=G;let z=bn(G),oe=O?z.frame:Math.max(0,W);n.state=P.film?{..._,frame:oe}:{...z,metric:_.metric},D()}if(e.live&&location.protocol.startsWith("http")){let P=()=>n.doc.runs.every(K=>K.is_finished),_=!1,N=async()=>{_||document.hidden||P()||(_=!0,await C().finally(()=>_=!1))};setInterval(N,va),document.addEventListener("visibilitychange",N)}let R=window.innerWidth,B=()=>{h.reset(),D()};window.addEventListener("resize",()=>{window.innerWidth!==R&&B(),R=window.innerWidth}),matchMedia("(prefers-color-scheme: dark)").addEventListener("change",B),document.head.append(m("style",{},Rr)),D()}function Dr(e){return e.runs.map(t=>{let n=t.training.loss?.steps.at(-1)??0,o=t.validation[t.metric],r=vr(o,1/0),s=[`${e.runs.length>1?`${t.name}: `:""}${t.is_finished?"finished at step":"step"} ${n.toLocaleString("en")}`,t.is_finished?"":`of ${t.steps.toLocaleString("en")}`,r===null?"":`· validation ${xt(t.metric).toLowerCase()} ${r.toFixed(3)}`];return Q(s.filter(Boolean).join(" "))})}function $a(e,t){let n=yt(e,t),o=a=>n.some(l=>l.dots===a),r=o(!0)&&o(!1)?"Thin: training. Thick with dots: validation.":"",s=["solid","dashed","dotted","dash-dotted"],i=e.runs.length>1?e.runs.map((a,l)=>`${s[l%mn.length]}: ${a.name}`):[];return Q([r,i.join(", ")].filter(Boolean).join(" "))}var Ce=e=>/^[1-9]\d{0,6}$/.test(e)?Number(e)-1:null,Je=(e,t)=>({name:t,write:n=>n[e]?"1":"0",read:n=>n==="1"||n==="0"?{[e]:n==="1"}:null}),Hr=(e,t,n)=>({name:t,write:o=>o[e],read:o=>n.includes(o)?{[e]:o}:null}),Bt=(e,t)=>({name:t,write:n=>String(n[e]+1),read:n=>Ce(n)===null?null:{[e]:Ce(n)}}),Ma=(e,t)=>e.attention.some(n=>n.name===t),Nt=[{name:"attention",write:e=>e.group,read:(e,t)=>Ma(t,e)?{group:e}:null},Bt("layer","layer"),Bt("head","head")],It={name:"pin",write:({locked:e})=>e?[e.row,e.column].map(t=>t===null?"":t+1).join():"",read:e=>{let[t,n]=e.split(",").map(Ce);return t==null?null:{locked:{row:t,column:n??null}}}},_r=[...Nt,Je("meanOfHeads","mean"),{name:"from",write:({query:e})=>e===null?"":e==="mean"?"all":String(e+1),read:e=>e==="all"?{query:"mean"}:Ce(e)===null?null:{query:Ce(e)}}],Or={name:"off",write:({headsOff:e})=>e.map(t=>t.replace(/(\d+)\.(\d+)$/,(n,o,r)=>`${+o+1}.${+r+1}`)).join(),read:(e,t)=>{let n=e.split(",").flatMap(o=>{let r=o.split("."),[s,i]=r.slice(2).map(Ce),a=t.attention.find(c=>c.name===r.slice(0,2).join("."));return a&&s!==null&&i!==null&&s<a.layers&&i<a.heads?[`${a.name}.${s}.${i}`]:[]});return n.length?{headsOff:[...new Set(n)].slice(0,t.live?void 0:1)}:null}},La={ablation:"break"},Ir={story:[{name:"step",write:({beat:e})=>e===null?"":String(e+1),read:e=>Ce(e)===null?null:{beat:Ce(e)}}],image:_r,spectrogram:_r,heads:[...Nt,Hr("drawing","drawing",["heatmap","lines"]),Je("words","words"),Je("specials","special"),Je("numbers","numbers"),Je("stretched","stretched"),It],compare:[...Nt,{name:"against",write:({againstHead:e})=>e?e.map(t=>t+1).join("."):"",read:e=>{let[t,n]=e.split(".").map(Ce);return t===null||n===null||n===void 0?null:{againstHead:[t,n]}}},{name:"position",write:({compared:e})=>e===null?"":String(e+1),read:e=>Ce(e)===null?null:{compared:Ce(e)}},Je("words","words"),It],search:[{name:"hypothesis",write:({candidate:e})=>e===null?"":String(e),read:(e,t)=>/^\d{1,7}$/.test(e)&&Number(e)<(t.search?.step.length??0)?{candidate:Number(e)}:null},{name:"steps",write:e=>e.unfolded?"all":"",read:e=>e==="all"?{unfolded:!0}:null}],alignment:[Bt("hypothesis","hypothesis"),Hr("alignment","drawing",["ribbons","matrix"]),Je("alignedTokens","tokens"),{name:"heads",write:({alignedHeads:e})=>e.map(t=>t.split(".").map(n=>Number(n)+1).join(".")).join(),read:e=>{let t=e.split(",").map(n=>n.split(".").map(Ce));return t.every(n=>n.length===2&&!n.includes(null))?{alignedHeads:t.map(n=>n.join("."))}:null}},It],attribution:[{name:"method",write:e=>e.method,read:(e,t)=>Object.hasOwn(t.attribution?.methods??{},e)?{method:e}:null},It],break:[Or,{name:"head",write:()=>"",read:Or.read}],sampling:[Bt("step","step")],masks:[{name:"attention",write:e=>e.mask,read:(e,t)=>t.masks.some(n=>n.group===e)?{mask:e,hiddenTerms:[]}:null},It],positions:[{name:"stack",write:e=>e.stack,read:(e,t)=>t.positions.some(n=>n.stack===e)?{stack:e}:null}],merges:[Bt("merge","merge")]},Br=[Je("present","present")];function ro(e,t){let n=s=>s.write(e)!==s.write(t),r=[...Ir[e.view]??[],...Br].filter(s=>Nt.includes(s)?Nt.some(n):n(s)).map(s=>`${s.name}=${encodeURIComponent(s.write(e)).replaceAll("%2C",",")}`);return`#${e.view}${r.length?`?${r.join("&")}`:""}`}function so(e,t,n,o){let[r,s]=e.replace(/^#/,"").split("?"),i=La[r]??r;if(!o.includes(i))return t;let a={...t,view:i},l=new URLSearchParams(s??"");for(let d of[...Ir[i]??[],...Br]){let u=l.get(d.name);u&&Object.assign(a,d.read(u,n)??{})}let c=n.attention.find(d=>d.name===a.group);return c&&(a.layer>=c.layers||a.head>=c.heads)&&([a.layer,a.head]=c.default_head),a}var vt=class{constructor(t,n=!1){this.doc=t;this.isAgainst=n;this.available=t.live&&location.protocol.startsWith("http")}doc;isAgainst;available;async look(t){let n=new URLSearchParams(Object.entries(t).map(([o,r])=>[o,String(r)]));return(await this.send(new URL("look",location.href),{method:"POST",body:n})).document}blame(t){return this.ask("blame",{word:t})}map(t,n,o){return this.ask("map",{group:t,layer:n,head:o})}async row(t,n,o,r){return(await this.ask("row",{group:t,layer:n,head:o,row:r})).weights}continue(t){return this.ask("continue",{candidate:t})}hypothesis(t){return this.ask("hypothesis",{candidate:t})}logits(t){return this.ask("logits",{position:t})}ablate(t){return this.ask("ablate",{head:t})}async ask(t,n){let o=new URL(t,location.href);for(let[r,s]of Object.entries(n))[s].flat().forEach(i=>o.searchParams.append(r,String(i)));return this.doc.session&&o.searchParams.set("session",String(this.doc.session.number)),this.isAgainst&&o.searchParams.set("side","against"),this.send(o)}async send(t,n){let o=await fetch(t,n).catch(()=>{throw new Error("The server does not respond. Is the command still running?")}),r=await o.json().catch(()=>({}));if(!o.ok)throw new Error(r.error??`The server answered ${o.status}.`);return r}};var wn=class{constructor(t){this.state=t}state;listeners=[];pending=null;set(t){let n=Object.keys(t).filter(o=>t[o]!==this.state[o]);n.length!==0&&(this.state={...this.state,...t},this.notify(n))}notify(t=[]){if(this.pending){for(let n of t)this.pending.add(n);return}this.pending=new Set(t),queueMicrotask(()=>{let n=this.pending;this.pending=null;for(let o of this.listeners)o(n)})}subscribe(t){this.listeners.push(t)}};function Re(e){let t=e.predictions.map((o,r)=>r),n=t.filter(o=>e.predictions[o].position===null||e.predictions[o].labels[0]!=="O");return n.length===0?{told:t,untagged:0}:{told:n,untagged:t.length-n.length}}function $t(e){return e===0?"":e===1?"1 other word has no tag.":`${e.toLocaleString("en")} other words have no tag.`}var ao=e=>e.predictions.length===1&&e.predictions[0].position===null&&e.predictions[0].labels.length>0?e.predictions[0]:null;function Ta(e){let{told:t,untagged:n}=Re(e);if(n===0)return null;let o=e.sequences.source??[],r=t.map(s=>{let{position:i,labels:a}=e.predictions[s],l=o[i??0]?.word;return[o.filter((d,u)=>u===i||l!==null&&d.word===l).map(({text:d})=>d).join("").trim(),a[0]]});return r.every(([s,i])=>e.output.includes(`${s}/${i}`))?r.map(s=>s.join(": ")).join(", "):null}function et(e){let t=Ta(e);if(t)return t;let n=ao(e)?.labels[0].trim();return n&&/^\d+$/.test(n)?`Label ${n}`:e.output||e.text}var Nr=e=>(e.sequences.target??[]).flatMap(({logprob:t})=>t===void 0?[]:[t??-1/0]),io=e=>e.reduce((t,n)=>t+n,0);function Wr(e){let t=e.predictions.filter(n=>n.probabilities.length>0);return t.length===0?null:{count:t.length,least:t.reduce((n,o)=>o.probabilities[0]<n.probabilities[0]?o:n)}}function xn(e){let t=ao(e);if(t)return{kind:"label",value:t.probabilities[0]};if(e.predictions.length>0){let o=Wr(e);return o&&{kind:"prediction",value:o.least.probabilities[0]}}let n=Nr(e);return n.length===0?null:e.sampling?{kind:"token",value:Math.exp(io(n)/n.length)}:{kind:"sequence",value:Math.exp(io(n))}}function Ur(e){let t=xn(e);if(!t)return null;let n=Y(t.value),o=ao(e);if(o){let a=o.labels.slice(1,4).map((l,c)=>`${l.trim()} ${Y(o.probabilities[c+1])}`);return{text:`${n} sure`,title:a.length?`Next: ${a.join(", ")}`:""}}if(t.kind==="prediction"){let{count:a,least:l}=Wr(e),c=`Of ${V(l.labels[0].trim())}, the least certain of ${a} predictions`;return a===1?{text:`${n} sure`,title:""}:{text:`at least ${n} sure`,title:c}}let r=Nr(e),s=`${Y(Math.exp(io(r)/r.length))} per token`,i=`Product of ${r.length} token probabilities; on average ${s} (geometric mean)`;return t.kind==="token"?{text:`sampled, ${s} on average`,title:i}:{text:`probability ${n}, ${s}`,title:i}}function Gr(e){let{name:t,parameters:n}=e.model;if(!t||n===0||e.merges)return"";let o=a=>/^[\w./-]+$/.test(a)?a:`'${a.replaceAll("'","'\\''")}'`,r=[],s=e.search?.settings.beam_size;typeof s=="number"&&r.push(`--beam ${s}`);for(let a of["temperature","top_k","top_p"]){let l=e.sampling?.filters[a];l!=null&&r.push(`--${a.replace("_","-")} ${l}`)}let{against:i}=e;return i&&i.text!==e.text&&r.unshift(`--against ${o(i.text)}`),i&&i.model.sha256!==e.model.sha256&&r.unshift(`--against-model ${o(i.model.name||"MODEL")}`),["regard look",o(t),o(e.text),...r].join(" ")}function Mt(e,t){return t==null?!1:!((e==="temperature"||e==="repetition_penalty")&&t===1)}function qr(e,t,n,o=[]){let r=Float64Array.from(e);for(let x of o)r[x]=-1/0;let s=1/0,i=x=>{Math.abs(x)<s&&(s=Math.abs(x))},a=[{name:"model",probabilities:Wt(r)}],l=x=>Mt(x,n[x])?n[x]:null,c=l("no_repeat_ngram");if(c!==null){for(let x of Sa(t,c))r[x]=-1/0;a.push({name:"no_repeat_ngram",probabilities:Wt(r)})}let d=l("repetition_penalty");if(d!==null){for(let x of new Set(t))r[x]*=d;a.push({name:"repetition_penalty",probabilities:Wt(r)})}let u=l("temperature");if(u===0){let x=Ut(r);i(r[x[0]]-r[x[1]]);let L=new Float64Array(r.length);L[x[0]]=1;let v=["temperature","top_k","top_p","min_p","typical_p"].filter(A=>l(A)!==null);return{stages:[...a,...v.map(A=>({name:A,probabilities:L}))],margin:s}}u!==null&&(r=r.map(x=>x/u),a.push({name:"temperature",probabilities:Wt(r)}));let h=Wt(r),p=(x,L)=>{h=jr(h.map((v,A)=>L(A)?v:0)),a.push({name:x,probabilities:h})},f=l("top_k");if(f!==null){let x=Ut(r);f<x.length&&i(r[x[f-1]]-r[x[f]]);let L=new Set(x.slice(0,f));p("top_k",v=>L.has(v))}let b=l("top_p");if(b!==null){let x=zr(Ut(h),h,b,i);p("top_p",L=>x.has(L))}let g=l("min_p");if(g!==null){let x=g*h.reduce((L,v)=>Math.max(L,v),0);h.forEach(L=>L>0&&i(L-x)),p("min_p",L=>h[L]>=x)}let w=l("typical_p");if(w!==null){let x=h.reduce((M,T)=>M-(T>0?T*Math.log(T):0),0),L=h.map(M=>Math.abs(-Math.log(M)-x)),v=Array.from(L.keys()).sort((M,T)=>L[M]-L[T]||M-T);for(let M=1;M<v.length;M++)h[v[M]]>0&&i(L[v[M]]-L[v[M-1]]);let A=zr(v,h,w,i);p("typical_p",M=>A.has(M))}return{stages:a,margin:s}}function Sa(e,t){let n=e.slice(e.length-t+1),o=[];for(let r=0;r+t<=e.length;r++)n.slice(0,t-1).every((s,i)=>e[r+i]===s)&&o.push(e[r+t-1]);return o}function zr(e,t,n,o){if(n>=1)return new Set(e);let r=new Set,s=0;for(let i of e){if(o(s-n),s>=n)break;r.add(i),s+=t[i]}return r}function Ut(e){return Array.from(e.keys()).sort((t,n)=>e[t]===e[n]?t-n:e[n]>e[t]?1:-1)}function Wt(e){let t=e.reduce((n,o)=>Math.max(n,o),-1/0);return jr(e.map(n=>Math.exp(n-t)))}function jr(e){let t=e.reduce((n,o)=>n+o,0);return e.map(n=>n/t)}var Ge=96,Gt=108,tt=24,yn=26;function kn(e,t){return{width:Ge+t*Gt+4,height:yn+e*tt+6}}function lo(e,t,n,o,r){let s=Math.max(1e-9,...t.flatMap(a=>a.values)),i=a=>a/s*(Gt-56);n.forEach((a,l)=>e.text(Ge+l*Gt,10,me(a,12,r.font,Gt-6),{fill:r.muted,size:12})),t.forEach((a,l)=>{let c=yn+l*tt+tt/2;a.isChosen&&e.rect(0,c-tt/2+1,o.width,tt-2,{fill:r.hue,opacity:.16,radius:4});let d=me(a.label,13,r.font,Ge-14);e.text(Ge-8,c,d,{fill:r.ink,weight:a.isChosen?700:400,anchor:"end"}),a.values.forEach((u,h)=>{let p=Ge+h*Gt;if(u===0){e.text(p,c,"removed",{fill:r.muted,size:11});return}let f=Math.max(1.5,i(u));e.rect(p,c-6,f,12,{fill:r.hue}),e.text(p+f+5,c,ie(u),{fill:r.ink,size:11})})})}function Vr(e){return{width:360,height:yn+e*tt+6}}function Kr(e,t,n,o,r){let s=Math.min(8,t.tokens.length),i=c=>t.probabilities[c]/t.times[c],a=c=>c/i(0)*(o.width-Ge-104),l={fill:r.muted,size:12};e.text(Ge,10,"probability / wait",l),e.text(o.width-52,10,"prob.",{...l,anchor:"end"}),e.text(o.width-2,10,"wait",{...l,anchor:"end"});for(let c=0;c<s;c++){let d=yn+c*tt+tt/2;e.text(Ge-8,d,me(n(t.tokens[c]),13,r.font,Ge-14),{fill:r.ink,anchor:"end",weight:c>0?400:700}),e.rect(Ge,d-6,Math.max(1.5,a(i(c))),12,{fill:r.hue,opacity:c>0?.5:1});let u={fill:r.ink,size:11,anchor:"end"};e.text(o.width-52,d,ie(t.probabilities[c]),u),e.text(o.width-2,d,ie(t.times[c]),u)}}var Xr={no_repeat_ngram:{label:"no_repeat_ngram",min:1,max:6,step:1,start:3},repetition_penalty:{label:"repetition_penalty",min:.5,max:3,step:.05,start:1.2},temperature:{label:"temperature",min:0,max:2,step:.05,start:.8},top_k:{label:"top_k",min:1,max:100,step:1,start:20},top_p:{label:"top_p",min:.01,max:1,step:.01,start:.9},min_p:{label:"min_p",min:.01,max:1,step:.01,start:.1},typical_p:{label:"typical_p",min:.01,max:1,step:.01,start:.9}},Ea={temperature:1,repetition_penalty:1},Yr={name:"sampling",title:"Sampling",applies:e=>(e.sampling?.steps.length??0)>0,mount:Aa};function Aa({doc:e,store:t,blobs:n,live:o}){let r=e.sampling,s=e.sequences.target??[],i=new ke(async D=>Be(await o.logits(Number(D))),()=>t.notify(),16),a=m("div",{class:"chips",role:"group","aria-label":"Generated tokens"}),l=m("p",{class:"fact"}),c=m("div",{class:"sliders"}),d=m("h3"),u=new ce("Probabilities after each filter",{role:"img",tabindex:null}),h=m("h3"),p=m("p",{class:"small"}),f=new ce("How the token was drawn",{role:"img",tabindex:null}),b=m("div",{class:"controls"}),g=m("p",{class:"readout",role:"status","aria-live":"polite"}),w=m("section",{class:"sampling","aria-label":"Sampling step"},m("h2",{},"How one token was sampled"),m("div",{class:"scroller"},a),l,g,m("div",{class:"columns"},m("div",{},m("h3",{},"Filters, in their order"),c),m("div",{class:"wide"},d,Qr("Distributions",u)),m("div",{},h,p,Qr("Draw",f),b))),x=null;E();let L=D=>r.filter_order.every(y=>{let[C,R]=[D.filters[y],r.filters[y]];return C===R||!Mt(y,C)&&!Mt(y,R)}),v=D=>e.vocabulary[D]?de(e.vocabulary[D]):`#${D}`;function A(D){let{state:y}=t;(D.has("step")||D.has("filters"))&&(x=null);let C=r.steps[Math.min(y.step,r.steps.length-1)];j(a,...r.steps.map(S)),(D.size===0||D.has("filters"))&&I(y);let R=C.logits?n.read(C.logits):o.available?i.read(String(C.position)):null;if(!R){g.textContent=R===null?"This file has no distribution of this step; a live page (regard look) has all.":"Reading the distribution …",l.textContent=`${V(v(C.token))} was generated.`;return}let B=s.slice(0,C.position).map(N=>N.id),P=qr(R.codes,B,y.filters,r.suppressed),_=L(y);l.textContent=F(C,P,_),g.textContent=_?"These are the recorded settings. Move a slider to see another distribution.":`Not the recorded settings: ${V(v(C.token))} was sampled with ${Ra(r.filters)}.`,T(C,P),k(C,P,_)}function M(D,y){let C=Ut(y.stages[0].probabilities).slice(0,12);return C.includes(D.token)||(C[C.length-1]=D.token),C.map(R=>({label:v(R),values:y.stages.map(B=>B.probabilities[R]),isChosen:R===D.token}))}function T(D,y){let C=y.stages[y.stages.length-1].probabilities,R=M(D,y),B=C.reduce((G,J)=>G+ +(J>0),0),P=R.filter(G=>G.values[G.values.length-1]>0).length,_=P<B?`, ${P} of them shown`:"";d.textContent=`${B.toLocaleString("en")} of ${C.length.toLocaleString("en")} tokens are left${_}`;let N=y.stages.map(G=>G.name),K=kn(R.length,N.length);u.draw(K.width,K.height,(G,J)=>lo(G,R,N,K,J)),u.element.setAttribute("aria-label",`Probabilities after the filters: ${R.slice(0,5).map(G=>`${G.label} ${ie(G.values[G.values.length-1])}`).join(", ")}`)}function k(D,y,C){let R=y.stages[y.stages.length-1].probabilities,B=x??(C?D.race:null),P=()=>{x=Pa(R),t.notify()},_=$().filters.temperature===0;if(h.textContent=_?"No dice: greedy":x?"Another draw, not the recorded one":"How the dice fell",p.textContent=_?"At temperature 0 the most probable token is taken.":B?`Each token gets a random wait (exponential, mean 1); the largest probability / wait wins. ${Ca(B.contenders)}`:"No token was drawn with these settings. Draw one:",f.element.hidden=!B||_,j(b,_?null:m("button",{type:"button",onclick:P},"Draw again"),x?m("button",{type:"button",onclick:()=>(x=null,t.notify())},"Recorded draw"):null,he(()=>`sampling.${D.position}`,()=>kn(M(D,y).length,y.stages.length),(K,G)=>{let J=M(D,y),O=y.stages.map(W=>W.name);lo(K,J,O,kn(J.length,O.length),G)})),!B||_)return;let N=Vr(Math.min(8,B.tokens.length));f.draw(N.width,N.height,(K,G)=>Kr(K,B,v,N,G)),f.element.setAttribute("aria-label",`The draw: ${v(B.tokens[0])} won`)}let $=()=>t.state;function S(D,y){return m("button",{type:"button","aria-pressed":String(y===t.state.step),onclick:()=>t.set({step:y})},v(D.token))}function E(){for(let y of r.filter_order){let C=Xr[y];if(!C)continue;let R=G=>t.set({filters:{...t.state.filters,[y]:G}}),B=m("input",{type:"checkbox","aria-label":`${C.label} on`,onchange:()=>R(B.checked?C.start:Ea[y]??null)}),{min:P,max:_,step:N}=C,K=m("input",{type:"range",min:P,max:_,step:N,id:`slider-${y}`,"data-name":y,oninput:()=>R(Number(K.value))});c.append(m("div",{class:"slider"},B,m("label",{for:`slider-${y}`},C.label),K,m("output",{})))}let D=()=>t.set({filters:{...r.filters}});c.append(m("button",{type:"button",onclick:D},"Recorded settings"))}function I(D){for(let y of c.querySelectorAll(".slider")){let C=y.querySelector("input[type=range]"),R=C.dataset.name,B=D.filters[R],P=Mt(R,B);y.querySelector("input[type=checkbox]").checked=P,C.value=String(B??Xr[R].start),y.querySelector("output").textContent=P?String(Number(B.toFixed(3))):"off",y.classList.toggle("off",!P)}}function F(D,y,C){let R=y.stages[0].probabilities[D.token],B=y.stages[y.stages.length-1].probabilities[D.token],P=1+y.stages[0].probabilities.reduce((N,K)=>N+ +(K>R),0),_=`${V(v(D.token))} was sampled: the model's choice number ${P}, probability ${ie(R)}`;return C?`${_}, after the filters ${ie(B)}.`:B>0?`${_}; with these settings ${ie(B)}.`:`${_}; with these settings it is impossible.`}return{element:w,update:A}}function Ca(e){return e===1?"Only one token was left.":`${e.toLocaleString("en")} tokens took part.`}function Zr(e){let t=n=>n.logprob??0;return e.reduce((n,o,r)=>t(o)<t(e[n])?r:n,0)}function Qr(e,t){return m("div",{class:"scroller",tabindex:0,role:"group","aria-label":e},t.element)}function Ra(e){return Object.entries(e).filter(([n,o])=>Mt(n,o)).map(([n,o])=>`${n} ${o}`).join(", ")||"no filter"}function Pa(e){let t=Array.from(e.keys()).filter(o=>e[o]>0).map(o=>({token:o,probability:e[o],time:-Math.log(1-Math.random())||1e-12})).sort((o,r)=>r.probability/r.time-o.probability/o.time),n=t.slice(0,24);return{tokens:n.map(o=>o.token),probabilities:n.map(o=>o.probability),times:n.map(o=>o.time),contenders:t.length}}function Jr(e,t){let n=e.picture?e.attention.filter(a=>a.columns==="source"):e.attention,o=Ke(e,n),r=o?.group??e.attention.find(a=>a.name==="decoder.cross")??e.attention[0],[s,i]=(o&&Da(e,o))??r?.default_head??[0,0];return{view:t,beat:null,group:r?.name??"encoder.self",layer:s,head:i,meanOfHeads:!1,query:null,drawing:"heatmap",statistic:"entropy",words:e.against!==void 0,specials:!0,numbers:r!==void 0&&r.row_count*r.column_count<=36,stretched:!1,hover:null,locked:null,candidate:null,pointed:null,unfolded:!1,hypothesis:0,alignment:"ribbons",alignedHeads:[],alignedTokens:!1,headsOff:[],method:"integrated_gradients",step:Zr(e.sampling?.steps??[]),filters:{...e.sampling?.filters??{}},merge:e.merges?.steps.length?1:0,mask:(e.masks.find(a=>a.terms.length>0)??e.masks[0])?.group??"decoder.self",hiddenTerms:[],present:!1,stack:e.positions[0]?.stack??"decoder",againstHead:null,compared:null}}function Da({against:e,model:t},n){let o=e?.attention.find(({name:s})=>s===n.group.name);if(!e||!o||e.model.sha256!==t.sha256)return null;let r=Ke(e,[o]);return r&&Math.abs(r.delta)>Math.abs(n.delta)?r.place:n.place}function Fa(e,t){let{protocol:n,hostname:o}=new URL(e),r=e.replace(/#.*/s,"")+t;return n==="file:"?{text:r,note:`For this computer. To share it, send the file and ${t}, which goes after its name.`}:n.startsWith("http")?["127.0.0.1","localhost","[::1]"].includes(o)?{text:r,note:"For this computer, while the page is served. To share it, save the page (--save)."}:{text:r,note:""}:{text:t,note:"A frame has no address: add this to a saved page's."}}async function Ha(e){try{return await navigator.clipboard.writeText(e),!0}catch{let t=document.body.appendChild(m("textarea",{readonly:!0},e));t.select();let n=document.execCommand("copy");return t.remove(),n}}function es(e){let t=m("span",{class:"small",role:"status"}),n=m("button",{type:"button",onclick:()=>{o()}},"Copy link");async function o(){let{text:r,note:s}=Fa(location.href,e());if(await Ha(r))j(t,["Copied",s].filter(Boolean).join(". "));else{let i=m("input",{readonly:!0,"aria-label":"Link",value:r});j(t,"Copy it from here: ",i),i.select()}n.focus()}return{elements:[n,t],clear:()=>t.hasChildNodes()&&j(t)}}var ts=`:root {
  color-scheme: light dark;
  --scheme: light;
  --page: #ffffff;
  --raised: #f4f5f7;
  --ink: #1b1e26;
  --muted: #5d6370;
  --rule: #d5d9e0;
  --accent: #b8420b;
  --hue: #2171b5;
  --minus: #8e2a9b;
  --tint: #1f9bff;
  --font: system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif;
}
@media (prefers-color-scheme: dark) {
  :root {
    --scheme: dark;
    --page: #14161b;
    --raised: #1f232b;
    --ink: #eceef2;
    --muted: #a3a9b6;
    --rule: #3a404b;
    --accent: #ff9457;
    --hue: #62aae2;
    --minus: #e38cf0;
  }
}
* {
  box-sizing: border-box;
}
[hidden] {
  display: none !important;
}
body {
  margin: 0;
  background: var(--page);
  color: var(--ink);
  font: 15px/1.5 var(--font);
}
header {
  display: flex;
  justify-content: space-between;
  gap: 8px 24px;
  padding: 18px 24px 14px;
  border-bottom: 1px solid var(--rule);
  overflow-wrap: anywhere;
}
main {
  padding: 0 24px 24px;
  max-width: 2400px;
}
h1 {
  font-size: 22px;
  line-height: 1.3;
  margin: 2px 0 4px;
}
header > div {
  min-width: 0;
}
header > div:first-child {
  flex: 1;
}
.tools {
  display: flex;
  flex-flow: row-reverse wrap;
  gap: 6px 10px;
  align-self: flex-start;
  align-items: center;
  flex: 0 1 auto;
}
.tools > .small {
  max-width: 36ch;
}
.tools button {
  white-space: nowrap;
}
.tools .small input {
  width: 20ch;
}
.sure {
  font-weight: 400;
  color: var(--muted);
  font-size: 0.82em;
  margin-left: 0.4em;
}
.box {
  margin-bottom: 12px;
}
.box .row {
  display: flex;
  flex-wrap: wrap;
  gap: 6px 12px;
  margin-bottom: 6px;
}
.box textarea {
  flex: 1 1 320px;
  min-width: 0;
  max-width: 1000px;
  font: inherit;
  color: inherit;
  background: var(--page);
  border: 1px solid var(--muted);
  border-radius: 6px;
  padding: 5px 10px;
  resize: vertical;
}
.box .controls {
  margin: 0;
}
.words button {
  padding: 0;
  border: 0;
  background: none;
  color: inherit;
  font: inherit;
  text-decoration: underline dotted 1px;
  text-underline-offset: 0.2em;
}
.blame {
  max-width: 1000px;
}
.pairs {
  margin: 8px 0;
  padding-left: 1.6em;
}
.pairs li {
  margin-bottom: 6px;
}
.pairs span {
  display: block;
}
.pairs .place {
  color: var(--muted);
  font-size: 0.85em;
}
button.main {
  background: var(--ink);
  border-color: var(--ink);
  color: var(--page);
}
button[aria-disabled="true"] {
  opacity: 0.6;
}
.problem:empty {
  display: none;
}
.problem {
  margin-top: 4px;
  font-weight: 600;
}
h2 {
  font-size: 18px;
  margin: 0;
}
h3 {
  font-size: 14px;
  margin: 0 0 2px;
}
p {
  margin: 0;
}
.small {
  font-size: 13px;
  color: var(--muted);
  font-weight: 400;
}
.note {
  max-width: 900px;
  margin-top: 4px;
}
button,
select,
input {
  font: inherit;
  color: inherit;
}
button {
  background: none;
  border: 1px solid var(--rule);
  border-radius: 6px;
  padding: 3px 12px;
  cursor: pointer;
}
button:hover {
  border-color: var(--muted);
}
:focus-visible {
  outline: 2px solid var(--accent);
  outline-offset: 2px;
}
input[type="checkbox"] {
  width: 17px;
  height: 17px;
}
@media (pointer: coarse) {
  input[type="checkbox"] {
    width: 24px;
    height: 24px;
  }
  .controls button,
  .control {
    min-height: 36px;
  }
}
select {
  max-width: 100%;
  min-width: 0;
  background: var(--page);
  border: 1px solid var(--rule);
  border-radius: 6px;
  padding: 3px 8px;
}
.card {
  border: 1px solid var(--rule);
  border-radius: 8px;
  padding: 12px 16px;
  margin-top: 14px;
  max-width: 760px;
  overflow-wrap: anywhere;
}
.card p + p {
  margin-top: 6px;
}
.card dl {
  display: grid;
  grid-template-columns: max-content 1fr;
  gap: 2px 16px;
  margin: 8px 0;
}
.card dt {
  color: var(--muted);
}
.card dd {
  margin: 0;
}
.card mark {
  background: var(--raised);
  color: inherit;
  font-weight: 600;
}
.legend {
  display: flex;
  flex-wrap: wrap;
  gap: 4px 18px;
  margin: 8px 0;
}
.legend span {
  display: inline-flex;
  align-items: center;
  gap: 7px;
}
.legend i {
  width: 22px;
  height: 13px;
  border: 1.5px solid var(--hue);
  border-radius: 3px;
}
.legend .winner {
  border: 3px solid var(--hue);
}
.legend .finished {
  border-radius: 7px;
}
.legend .plus {
  border: 0;
  background: color-mix(in srgb, var(--hue) 60%, var(--page));
}
.legend .minus {
  border: 0;
  background: color-mix(in srgb, var(--minus) 60%, var(--page));
}
.legend .dropped {
  border: 1px dashed var(--muted);
}
.compare h3 {
  margin-top: 14px;
}
.compare .card h3 {
  margin-top: 0;
}
.facts {
  margin: 4px 0 12px;
  padding-left: 20px;
  max-width: 900px;
}
.sides {
  display: grid;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 340px), 1fr));
  gap: 12px;
}
.sides .card {
  margin: 0;
  max-width: none;
}
.words {
  display: flex;
  flex-wrap: wrap;
  gap: 4px 10px;
  font-size: 17px;
}
.words > span {
  min-width: 0;
}
.words .small {
  display: block;
  line-height: 1.2;
}
.sides mark {
  background: none;
  color: inherit;
  font-weight: 600;
  text-decoration: underline 2px;
  text-underline-offset: 3px;
}
.next {
  width: 100%;
  max-width: 760px;
  border-collapse: collapse;
  table-layout: fixed;
}
.next th {
  text-align: left;
  font-weight: 400;
  overflow-wrap: anywhere;
}
.next thead th {
  color: var(--muted);
  font-size: 13px;
}
.next .bar {
  display: inline-block;
  height: 11px;
  background: var(--hue);
  margin-right: 7px;
}
.maps {
  display: grid;
  grid-template-columns: repeat(3, minmax(0, 1fr));
  gap: 0 24px;
}
@media (max-width: 880px) {
  .maps {
    grid-template-columns: minmax(0, 1fr);
  }
}
.head-grid {
  display: inline-grid;
  gap: 3px;
  align-items: center;
  margin: 4px 0 12px;
}
.head-grid button {
  padding: 0;
  width: 30px;
  height: 26px;
  font-size: 13px;
  border-radius: 4px;
}
.head-grid button[aria-pressed="true"] {
  background: var(--accent);
  border-color: var(--accent);
  color: var(--page);
}
.head-grid span {
  text-align: right;
  padding-right: 5px;
}
.grids {
  display: flex;
  flex-wrap: wrap;
  gap: 18px 40px;
}
.grids .group {
  min-width: 0;
  max-width: 100%;
}
.grids .stage {
  cursor: pointer;
}
.chips {
  display: flex;
  gap: 4px;
  padding-bottom: 6px;
}
.chips button {
  padding: 2px 8px;
  white-space: nowrap;
}
.chips canvas {
  display: block;
  margin: 4px auto;
}
.chips button[aria-pressed="true"] {
  background: var(--accent);
  border-color: var(--accent);
  color: var(--page);
}
.columns {
  display: flex;
  flex-wrap: wrap;
  gap: 18px 40px;
  margin-top: 14px;
}
.sampling .columns > div:last-child {
  width: 368px;
}
.columns > div {
  min-width: 0;
  max-width: 100%;
}
.sliders {
  display: grid;
  gap: 7px;
  margin-top: 6px;
  justify-items: start;
}
.slider {
  display: grid;
  grid-template-columns: 18px 142px 120px 44px;
  gap: 6px;
  align-items: center;
}
.slider input {
  margin: 0;
  width: 100%;
  accent-color: var(--hue);
}
.slider.off label,
.slider output {
  color: var(--muted);
}
.slider.off input[type="range"] {
  opacity: 0.35;
}
.columns .stage {
  cursor: default;
}
.cards {
  display: grid;
  grid-template-columns: repeat(auto-fill, minmax(min(100%, 380px), 1fr));
  gap: 12px;
}
.cards .card {
  margin: 0;
  max-width: none;
}
.cards .card:only-child {
  grid-column: 1 / -1;
}
.cards dd {
  display: flex;
  align-items: center;
}
.card .bar {
  display: inline-block;
  height: 11px;
  background: var(--hue);
  margin-right: 7px;
}
button:disabled {
  opacity: 0.4;
  cursor: default;
}
footer {
  margin-top: 28px;
  border-top: 1px solid var(--rule);
  padding-top: 10px;
  overflow-wrap: anywhere;
}
/* A slide: the page is laid out small and enlarged, see present.ts. */
.present header,
.present #panel {
  zoom: var(--zoom);
}
.present header {
  padding: 6px 14px 2px;
  border: 0;
}
.present main {
  padding: 0;
}
.present #panel {
  padding: 0 14px;
}
.present .tabs {
  zoom: calc(var(--zoom) * 0.75);
  margin: 0 18px 4px;
}
.present h1 {
  font-size: 18px;
  margin: 0;
}
.present h2 {
  font-size: 16px;
}
.present .fact {
  font-size: 13px;
  margin: 0 0 4px;
}
.present header > div:first-child {
  display: flex;
  flex-wrap: wrap;
  align-items: baseline;
  gap: 0 16px;
}
.present .input[hidden] {
  display: block !important; /* a live page has its input in a box, which a slide does not need */
}
.present .stage {
  margin: 0 auto;
}
.present .columns {
  margin-top: 4px;
}
.present .columns .stage {
  margin: 0;
}
.present .readout {
  min-height: 0;
  padding: 3px 10px;
  margin-bottom: 4px;
  font-size: 13px;
}
.present .heads {
  grid-template-columns: minmax(0, 1fr);
}
.present header .small,
.present .tools > :not(.presenter),
.present .note,
.present .box,
.present .saves,
.present .overview,
.present .key,
.present .legend,
.present .slide-hidden,
.present #more-views,
.present .chips canvas,
.present .beam > .fact,
.present .sampling > .readout,
.present #panel p.small,
.present .detail > .controls,
.present .beam > .controls,
.present .alignment > .controls,
.present footer {
  display: none;
}
.present .presenter {
  position: absolute;
  top: 4px;
  right: 8px;
  border: 0;
  padding: 0 6px;
  opacity: 0.6;
}
@media (max-width: 760px) {
  header {
    padding: 12px 14px 10px;
  }
  main {
    padding: 0 14px 18px;
  }
  h1 {
    font-size: 18px;
  }
  header {
    flex-direction: column;
  }
  .tools {
    flex-direction: row;
  }
}
.switches {
  display: inline-grid;
  grid-template-columns: auto repeat(var(--heads), minmax(14px, max(84px, 6vw)));
  gap: 4px;
  align-items: center;
  width: 100%;
}
.switches > span {
  text-align: center;
  white-space: nowrap;
}
.switch {
  display: flex;
  align-items: center;
  justify-content: space-between;
  gap: 4px;
  min-width: 0;
  min-height: 40px;
  padding: 2px 8px;
  background: var(--effect);
  border: 1px solid var(--rule);
  border-radius: 8px;
  color: var(--ink);
  font-size: 14px;
  font-variant-numeric: tabular-nums;
  overflow: hidden;
}
.switch i {
  flex: none;
  width: 20px;
  height: 12px;
  border-radius: 6px;
  border: 1.5px solid var(--ink);
  background: radial-gradient(circle at calc(100% - 4.5px) 50%, var(--ink) 3px, transparent 3.6px);
}
.switch[aria-checked="false"] {
  outline: 3px solid var(--accent);
  outline-offset: -2px;
  background: var(--page);
}
.switch[aria-checked="false"] i {
  border-color: var(--accent);
  background: radial-gradient(circle at 4.5px 50%, var(--accent) 3px, transparent 3.6px);
}
.switches.dense .switch {
  min-height: 26px;
  padding: 0;
  border-radius: 4px;
}
.switches.dense .switch i,
.switches.dense .switch > span {
  display: none;
}
.break .grids {
  gap: 12px 32px;
}
.break .readout {
  margin-top: 12px;
}
.break .controls button:disabled {
  color: var(--muted);
  opacity: 0.6;
}
.result {
  position: sticky;
  bottom: 8px;
  max-width: 980px;
  max-height: 40vh;
  overflow: auto;
  background: var(--page);
}
@media (max-width: 760px) {
  /* Above the switches, where it covers none of the last. */
  .break {
    display: flex;
    flex-direction: column;
  }
  .break .grids,
  .break .readout,
  .break .result ~ * {
    order: 1;
  }
  .result {
    top: 0;
    bottom: auto;
    width: 100%;
    margin: 0 0 12px;
    padding: 8px 12px;
    min-height: 120px;
    max-height: 34vh;
    z-index: 1;
  }
  .switch {
    scroll-margin-top: 36vh;
  }
}
.present .result {
  position: static;
  max-height: none;
  margin-top: 0;
  padding: 6px 12px;
}
.present .break .grids {
  flex-wrap: nowrap;
  gap: 8px 20px;
}
.present .break .group {
  flex: 1 1 0;
  max-width: 420px;
}
.present .break .switches {
  grid-template-columns: auto repeat(var(--heads), minmax(0, 1fr));
  gap: 3px;
}
.present .switch {
  min-height: 26px;
  padding: 0 3px;
  font-size: 12px;
}
.present .switch i {
  width: 15px;
  height: 10px;
}
.present .break .readout {
  margin-top: 6px;
}
.present .break .controls {
  margin-bottom: 4px;
  font-size: 13px;
}
.present .result p + p {
  margin-top: 2px;
}
.result .retyped {
  font-size: 1.35em;
  line-height: 1.5;
  white-space: pre-wrap;
}
.result del {
  color: var(--muted);
  text-decoration: line-through 2px;
}
.result ins {
  color: var(--minus);
  font-weight: 600;
  text-decoration: none;
}
.result .effect {
  font-weight: 600;
}
.result .word {
  display: inline-block;
  margin: 2px 3px 0 0;
  padding: 1px 5px;
  border-radius: 4px;
}
@media (prefers-reduced-motion: no-preference) {
  .result ins {
    animation: retype 0.5s;
  }
  @keyframes retype {
    from {
      opacity: 0;
    }
  }
}
`;var ns=`/* The tabs, the story and the heads: what the page of \`regard look\` and that of an exported model have in common. */
.saves {
  display: inline-flex;
}
.saves button {
  margin-left: -1px;
  border-radius: 0 6px 6px 0;
}
.saves button:first-child {
  margin: 0;
  border-radius: 6px 0 0 6px;
}
.fact {
  font-size: 15px;
  margin: 2px 0 10px;
}
.tabs {
  display: flex;
  gap: 4px;
  margin: 0 0 18px;
  border-bottom: 1px solid var(--rule);
  flex-wrap: wrap;
}
.tabs button {
  border: 0;
  border-bottom: 3px solid transparent;
  border-radius: 0;
  padding: 10px 12px 7px;
  color: var(--muted);
  white-space: nowrap;
}
.tabs button:focus-visible {
  outline-offset: -2px;
}
.tabs button[aria-selected="true"] {
  color: var(--ink);
  border-bottom-color: var(--accent);
  font-weight: 600;
}
#tab-more::after {
  content: " ▾";
}
.tabs + #more-views {
  margin-top: -18px; /* the two rows touch */
  font-size: 14px;
}
.choice {
  display: inline-flex;
}
.choice button {
  border-radius: 0;
  margin-left: -1px;
}
.choice button:first-child {
  border-radius: 6px 0 0 6px;
  margin: 0;
}
.choice button:last-child {
  border-radius: 0 6px 6px 0;
}
.choice button[aria-pressed="true"] {
  background: var(--ink);
  color: var(--page);
  border-color: var(--ink);
}
.controls {
  display: flex;
  flex-wrap: wrap;
  gap: 8px 18px;
  align-items: center;
  margin-bottom: 12px;
}
.control {
  max-width: 100%;
  display: inline-flex;
  gap: 7px;
  align-items: center;
}
.control input {
  accent-color: var(--hue);
  margin: 0;
}
.scroller {
  overflow-x: auto;
  padding: 2px;
}
.stage {
  position: relative;
  touch-action: pan-x pan-y;
  cursor: crosshair;
  max-width: none;
}
.stage:focus-visible {
  outline-offset: -2px;
} /* a scroller would cut it off */
.stage canvas {
  position: absolute;
  inset: 0;
  display: block;
}
.overlay {
  pointer-events: none;
}
.heads {
  display: grid;
  grid-template-columns: minmax(200px, 300px) minmax(0, 1fr);
  gap: 36px;
  align-items: start;
}
.overview {
  min-width: 0;
  display: grid;
  gap: 14px;
}
.overview .stage,
.beam .stage {
  cursor: pointer;
}
.overview h2 {
  font-size: 14px;
  margin-bottom: 2px;
}
.overview h2 span {
  display: block;
  line-height: 1.2;
}
.detail {
  min-width: 0;
}
.stage-row {
  display: flex;
  gap: 16px;
  align-items: flex-start;
}
.stage-row .scroller {
  min-width: 0;
}
.lens {
  flex: none;
}
.readout {
  background: var(--raised);
  border-radius: 6px;
  padding: 9px 13px;
  min-height: 63px; /* two lines: a longer sentence does not move what is below */
  margin-bottom: 10px;
  overflow-wrap: anywhere;
}
.key {
  display: flex;
  gap: 12px;
  align-items: center;
  margin: 10px 0 6px;
  flex-wrap: wrap;
}
.stage svg {
  position: absolute;
  inset: 0;
  display: block;
}
.story .caption {
  font-size: 19px;
  min-height: 3em;
  margin: 0 0 8px;
}
.story .stage {
  cursor: default;
}
.telling,
.aside {
  min-width: 0;
}
@media (min-width: 1500px) {
  :root:not(.present) .story {
    display: grid;
    grid-template-columns: minmax(0, 1fr) minmax(0, 560px);
    gap: 0 40px;
  }
}
@media (min-width: 1180px) and (max-width: 1499px) {
  :root:not(.present) .small-picture {
    display: grid;
    grid-template-columns: minmax(0, 1fr) 340px;
    gap: 0 32px;
  }
  .small-picture .strip {
    gap: 5px;
  }
  .small-picture .strip > button,
  .small-picture .strip > div {
    min-width: 88px;
    padding: 6px 8px;
  }
}
.story > :not(.telling, .aside) {
  grid-column: 1 / -1;
}
.aside .strip:first-child {
  margin-top: 12px;
}
.player {
  display: flex;
  gap: 6px;
}
.player button,
.story .choice button {
  min-width: 44px;
  min-height: 44px;
}
.player .play {
  min-width: 88px;
  background: var(--ink);
  color: var(--page);
}
.strip {
  display: flex;
  flex-wrap: wrap;
  gap: 8px;
  align-items: center;
  margin: 16px 0 22px;
}
.strip > button,
.strip > div {
  display: grid;
  border: 1px solid var(--rule);
  border-radius: 8px;
  padding: 6px 16px;
  min-width: 96px;
  min-height: 44px;
  text-align: center;
  line-height: 1.35;
}
.findings {
  list-style: none;
  margin: 8px 0 16px;
  padding: 0;
  display: grid;
  gap: 8px;
  grid-template-columns: repeat(auto-fill, minmax(min(100%, 700px), 1fr));
}
.findings li {
  display: flex;
  flex-wrap: wrap;
  gap: 6px 10px;
  align-items: center;
  padding: 8px 14px;
  border-left: 3px solid var(--hue);
  background: var(--raised);
  border-radius: 0 6px 6px 0;
  overflow-wrap: anywhere;
}
.findings span {
  flex: 1 1 300px;
  min-width: 0;
}
.transcript {
  margin-bottom: 12px;
  overflow-wrap: anywhere;
}
.transcript summary {
  cursor: pointer;
  min-height: 44px;
  line-height: 44px;
}
@media (max-width: 760px) {
  .tabs {
    gap: 0;
  }
  .tabs button {
    padding: 10px 9px 7px;
  }
  .heads {
    grid-template-columns: minmax(0, 1fr);
    gap: 18px;
  }
  .heads .detail {
    order: -1;
  } /* the map first: it opens at the most telling head */
  .readout {
    min-height: 108px;
  }
}
`;function rs(e,t){let n=e.filter(c=>c.level===2),o=n.length>1&&n.length<e.length,r=n[0]?.name??"",s=({name:c,title:d})=>({id:c,title:d,open:()=>t(c)}),i={id:"more",title:"More",open:()=>t(r)},a=os("Views","panel",o?[...e.filter(c=>c.level!==2).map(s),i]:e.map(s)),l=os("More views","panel",o?n.map(s):[]);return l.element.id="more-views",a.button("more")?.setAttribute("aria-controls","more-views"),{elements:[a.element,l.element],mark(c){let d=o&&n.some(u=>u.name===c);d&&(r=c),l.element.hidden=!d,a.mark(d?"more":c),l.mark(c)}}}function os(e,t,n){let o=n.map(({id:s,title:i,open:a})=>m("button",{type:"button",role:"tab",id:`tab-${s}`,"aria-controls":t,onclick:a},i)),r=m("div",{class:"tabs",role:"tablist","aria-label":e},...o);return r.addEventListener("keydown",s=>{let i=o.indexOf(s.target),a=n.length-1,c={ArrowLeft:i>0?i-1:a,ArrowRight:i<a?i+1:0,Home:0,End:a}[s.key];i<0||c===void 0||(s.preventDefault(),n[c].open(),o[c].focus())}),{element:r,button:s=>o[n.findIndex(i=>i.id===s)],mark:s=>n.forEach((i,a)=>{o[a].setAttribute("aria-selected",String(i.id===s)),o[a].tabIndex=i.id===s?0:-1,i.id===s&&(r.scrollLeft=o[a].offsetLeft-r.offsetLeft-40)})}}function Lt([e,t],[n,o]){let r=(e+n)/2;return`M${e},${t}C${r},${t},${r},${o},${n},${o}`}function vn([e,t],[n,o]){let r=(t+o)/2;return`M${e},${t}C${e},${r},${n},${r},${n},${o}`}var co=16,uo=18,$n=170,Ia=.75;function as(e,t,n){let o=u=>Math.min(160,Math.max(14,ge(u,co,n.font))),r=u=>{let h=u.map(o),p=Math.min(t,1500)-h.reduce((g,w)=>g+w,20),f=Math.max(uo,Math.min(180,p/Math.max(1,u.length-1))),b=8;return h.map(g=>(b+=g+f,[b-f-g/2,g+f-uo]))},s=u=>u.length?u[u.length-1][0]+u[u.length-1][1]/2:0,[i,a]=[r(e.rows.map(u=>u.label)),r(e.columns.map(u=>u.label))],l=Math.max(s(i),s(a))+12;if(l<=t){let u=h=>h.map(([p,f])=>[p+(l-s(h)-12)/2,f]);return{upright:!0,rows:u(i),columns:u(a),width:l,height:$n+60}}let c=30,d=u=>Array.from({length:u},(h,p)=>[18+p*c,20]);return{upright:!1,rows:d(e.rows.length),columns:d(e.columns.length),width:Math.min(t,640),height:24+c*Math.max(e.rows.length,e.columns.length)}}function mo(e,t,n,o,r){let s=Math.min(130,n.width*.3),i=d=>n.upright?[n.columns[d][0],38]:[s,n.columns[d][0]],a=d=>n.upright?[n.rows[d][0],$n+22]:[n.width-s,n.rows[d][0]],l=(d,u)=>{for(let{column:h,weight:p}of ss(t,d)){let f=(n.upright?vn:Lt)(i(h),a(d));e.path(f,{stroke:u,width:1+13*p,opacity:.2+.6*p})}};t.rows.forEach((d,u)=>u!==r&&l(u,r===null?o.hue:o.rule)),r!==null&&l(r,o.accent);let c=new Set(r===null?[]:ss(t,r).map(d=>d.column));t.columns.forEach((d,u)=>{let[h,p]=n.upright?[n.columns[u][0],24]:[s-8,n.columns[u][0]],f=c.has(u)?o.accent:o.ink;is(e,o,d.label,h,p,f,n.upright?"middle":"end",n.upright?160:s-10)}),t.rows.forEach((d,u)=>{let[h,p]=n.upright?[n.rows[u][0],$n+38]:[n.width-s+8,n.rows[u][0]],f=u===r?o.accent:o.ink;is(e,o,d.label,h,p,f,n.upright?"middle":"start",n.upright?160:s-10)})}function ss(e,t){let n=0;return We(e,t,6).filter(({weight:o})=>{let r=o>=.03&&n<Ia;return n+=o,r})}function ls(e,t,n){if(!(e.upright?n>$n*.5:t>e.width*.5))return null;let r=e.upright?t:n,s=e.rows.findIndex(([i,a])=>Math.abs(r-i)<=a/2+uo/2);return s<0?null:s}function is(e,t,n,o,r,s,i,a){e.text(o,r,me(n,co,t.font,a),{fill:s,size:co,anchor:i})}var cs=200,us={name:"alignment",title:"Alignment",level:2,applies:e=>e.hypotheses.length>0&&(e.sequences.source?.length??0)>0,mount:Ba};function Ba({doc:e,store:t,blobs:n}){let o=m("p",{class:"fact"}),r=m("div",{class:"controls"}),s=m("div",{class:"slide-hidden"}),i=new ce("Alignment. Arrow keys move along the generated words, Enter pins, Escape releases."),a=m("p",{class:"readout",role:"status","aria-live":"polite"}),l=m("p",{class:"small"}),c=m("section",{class:"alignment","aria-label":"Alignment"},m("h2",{},"Which source words each word comes from"),o,r,a,m("div",{class:"scroller"},i.element),s,l),d=null,u=null,h=null,p=()=>t.state.locked??t.state.hover,f=v=>{let{x:A,y:M}=i.locate(v);if(!d)return null;if(t.state.alignment==="matrix")return h&&Ue(d,h,A,M);let T=u&&ls(u,A,M);return T===null?null:{row:T,column:null}};i.element.addEventListener("pointermove",v=>{let[A,M]=[f(v),t.state.hover];(A?.row!==M?.row||A?.column!==M?.column)&&t.set({hover:A})}),i.element.addEventListener("pointerleave",()=>t.set({hover:null})),i.element.addEventListener("click",v=>{let A=f(v);t.set({locked:A&&A.row===t.state.locked?.row?null:A})}),i.element.addEventListener("keydown",v=>{if(!d?.rows.length)return;if(v.key==="Escape")return t.set({locked:null});let A={ArrowLeft:-1,ArrowUp:-1,ArrowRight:1,ArrowDown:1,Enter:0}[v.key];if(A===void 0)return;v.preventDefault();let M=p()===null?0:Math.max(0,Math.min(d.rows.length-1,p().row+A));t.set({locked:{row:M,column:null},hover:null})});function b(v){let{state:A}=t,M=e.hypotheses[A.hypothesis]??e.hypotheses[0],T=v.size>0&&[...v].every(S=>S==="hover"||S==="locked"),k=n.read(M.cross);if(!T){let S=Na(A,M,k);o.textContent=Wa(S,A),j(r,...x(M)),j(s,k?L(k,S):null),d=k?w(M,k,S,A):null,l.textContent="Attention is not an explanation by itself: it shows where the decoder attended, not why. Special tokens are left out."+(A.alignment==="ribbons"?" A word shows its strongest weights until they cover 75 %; weights below 0.03 are left out.":"")}if(!d){a.textContent="Reading the attention …";return}g(d,T);let $=Fe(p(),d);a.textContent=$?Ua(d,$):Ee("a generated word","to see where it comes from")}function g(v,A){let M=ae(),{state:T}=t,k=Math.max(260,c.clientWidth),$=Fe(p(),v);if(T.alignment==="ribbons"){u=as(v,k-6,M),i.draw(u.width,u.height,S=>mo(S,v,u,M,$?.row??null)),i.drawOverlay(u.width,u.height,()=>{});return}h=He(v,k,M,Xe(i.element,44*v.rows.length)),A||i.draw(h.width,h.height,S=>Ae(S,v,h,M)),i.drawOverlay(h.width,h.height,S=>{$&&Ze(S,v,h,M,$,T.locked!==null)})}function w(v,A,M,T){let[,k,$,S]=A.shape,E=A.codes,I=new Float32Array($*S);for(let[D,y]of M){let C=(D*k+y)*$*S;for(let R=0;R<I.length;R++)I[R]+=Ie[E[C+R]]/M.length}let F=!T.alignedTokens;return je(Uint8Array.from(I,ft),S,fe(v.tokens.slice(0,$),F,!1),fe(e.sequences.source.slice(0,S),F,!1))}function x(v){let{state:A}=t,M={hover:null,locked:null},T=e.hypotheses.map((k,$)=>[String($),`${$+1}. ${Q(k.text,60)} (${k.score.toFixed(2)})`]);return[Te("Drawing",[["ribbons","Ribbons"],["matrix","Matrix"]],A.alignment,k=>t.set({alignment:k,...M})),Me("Tokens instead of words",A.alignedTokens,k=>t.set({alignedTokens:k,...M})),T.length>1?Se("Hypothesis",T,String(A.hypothesis),k=>t.set({hypothesis:Number(k),...M})):null,he(()=>`alignment.${e.hypotheses.indexOf(v)}`,()=>A.alignment==="ribbons"?u:h,(k,$)=>{d&&(A.alignment==="ribbons"?mo(k,d,u,$,p()?.row??null):Ae(k,d,h,$))})]}function L(v,A){let[M,T]=v.shape,k=new Set(A.map(([F,D])=>`${F}.${D}`)),$=F=>t.set({alignedHeads:F}),S=m("div",{class:"head-grid",role:"group","aria-label":"Average of these heads"});if(S.style.gridTemplateColumns=`auto repeat(${Math.min(T,cs)}, 30px)`,M*T<=cs)for(let F=0;F<M;F++){S.append(m("span",{class:"small"},`layer ${F+1}`));for(let D=0;D<T;D++){let y=`${F}.${D}`,C=()=>{let B=k.has(y)?[...k].filter(P=>P!==y):[...k,y];$(B)},R={"aria-pressed":String(k.has(y)),"aria-label":`Layer ${F+1}, head ${D+1}`,onclick:C};S.append(m("button",{type:"button",...R},String(D+1)))}}let E=Array.from({length:M*T},(F,D)=>`${Math.floor(D/T)}.${D%T}`),I=m("div",{class:"controls"},m("button",{type:"button",onclick:()=>$([])},"Heads that align best"),m("button",{type:"button",onclick:()=>$(E)},"All heads"));return m("div",{},m("h3",{},"Average of these heads"),m("div",{class:"scroller"},S),I)}return{element:c,update:b}}function Na(e,t,n){if(!n)return[];let[o,r]=n.shape,s=e.alignedHeads.map(i=>i.split(".").map(Number)).filter(([i,a])=>i<o&&a<r);return s.length?s:t.link_heads}function Wa(e,t){let n=e.map(([r,s])=>`layer ${r+1}, head ${s+1}`),o=t.alignedHeads.length===0;return e.length===1?o?`The head that aligns best: ${n[0]}.`:`One head: ${n[0]}.`:o?`Average of the ${e.length} heads that align best: ${n.join("; ")}.`:`Average of ${e.length} chosen heads.`}function Ua(e,t){let n=We(e,t.row,3).filter(s=>s.weight>=.02).map(s=>`${V(e.columns[s.column].label)} ${ie(s.weight)}`),o=e.hidden(t.row),r=o>=.01?` Special tokens hold ${ie(o)}.`:"";return`Generating ${V(e.rows[t.row].label)}, the decoder attends to ${n.join(", ")||"no word in particular"}.${r}`}var ms={occlusion:{title:"Occlusion",says:"Change of the logit if the token is there, against the mean embedding in its place."},gradient_x_input:{title:"Gradient × input",says:"Gradient of the logit times the embedding's distance from the mean embedding."},integrated_gradients:{title:"Integrated gradients",says:"The same gradient, averaged on the way from the mean embedding: the numbers of a row sum to the difference of the logits."}},hs={name:"attribution",title:"Attribution",level:2,applies:e=>(e.attribution?.outputs.length??0)>0,mount:Ga};function Ga({doc:e,store:t,blobs:n}){let o=e.attribution,r=m("p",{class:"fact"}),s=m("div",{class:"controls"}),i=m("p",{class:"readout",role:"status","aria-live":"polite"}),a=new ce("Contributions of input tokens to outputs. Arrow keys move, Escape releases."),l=m("p",{class:"small"}),c=m("section",{class:"attribution","aria-label":"Attribution"},m("h2",{},"What each input token contributed"),r,s,i,m("div",{class:"scroller"},a.element),m("div",{class:"legend small"},m("span",{},m("i",{class:"plus"}),"makes the output likelier"),m("span",{},m("i",{class:"minus"}),"makes it less likely"),m("span",{},"rows: outputs; columns: what the model read; numbers: change of the logit")),l),d=null,u=null,h=()=>t.state.locked??t.state.hover,p=b=>{let{x:g,y:w}=a.locate(b);return d&&u&&Ue(d,u,g,w)};a.element.addEventListener("pointermove",b=>{let[g,w]=[p(b),t.state.hover];(g?.row!==w?.row||g?.column!==w?.column)&&t.set({hover:g})}),a.element.addEventListener("pointerleave",()=>t.set({hover:null})),a.element.addEventListener("click",b=>t.set({locked:t.state.locked?null:p(b)})),a.element.addEventListener("keydown",b=>{if(b.key==="Escape")return t.set({locked:null});let w={ArrowUp:[-1,0],ArrowDown:[1,0],ArrowLeft:[0,-1],ArrowRight:[0,1]}[b.key];if(!w||!d)return;b.preventDefault();let x=(A,M)=>Math.max(0,Math.min(M-1,A)),L=h()??{row:-w[0],column:-w[1]},v={row:x(L.row+w[0],d.rows.length),column:x((L.column??0)+w[1],d.columns.length)};t.set({locked:v,hover:null})});function f(b){let{state:g}=t,w=ae(),x=o.methods[g.method]?g.method:Object.keys(o.methods)[0],L=Object.keys(o.methods).map(k=>[k,ms[k]?.title??k]);j(s,Te("Method",L,x,k=>t.set({method:k})),he(()=>`attribution.${x}`,()=>u,k=>d&&ds(k,d,u,w,null)));let v=n.read(o.methods[x]);if(!v){i.textContent="Reading the numbers …";return}d=za(e,o,v.codes),u=He(d,Math.max(260,c.clientWidth-6),w,Xe(a.element));let A=Fe(h(),d);a.describe(u.left,u.top,u.cell),a.draw(u.width,u.height,k=>ds(k,d,u,w,A)),a.drawOverlay(u.width,u.height,()=>{});let M=[ms[x]?.says,x==="integrated_gradients"&&Ka(o)],T="Special tokens are the same in the input and in the baseline, so their columns are empty.";l.textContent=[...M,d.columns.some(k=>k.special)&&T].filter(Boolean).join(" "),r.textContent=ja(d),i.textContent=A?Va(d,o,A):Ee("a cell","to read a contribution")}return{element:c,update:f}}function za(e,t,n){let o=c=>rt(c).map((d,u)=>({label:d,special:c[u].role==="special",members:[u]})),r=o((e.sequences.source??[]).slice(0,t.source_columns)),s=o((e.sequences.target??[]).slice(0,t.target_columns)),i=o(e.sequences.target??e.sequences.source??[]),a=t.outputs.map(c=>c===null?{label:"label",special:!1,members:[]}:i[c]),l=n.reduce((c,d)=>Math.max(c,Math.abs(d)),1e-9);return{rows:a,columns:[...r,...s],values:n,largest:l,sourceColumns:r.length}}function ds(e,t,n,o,r){let{cell:s,left:i,top:a}=n,[l,c]=[t.rows.length,t.columns.length],d=new Uint32Array(l*c);for(let h=0;h<d.length;h++){let p=t.values[h];d[h]=Qe(o.page,p<0?o.minus:o.hue,qa(Math.abs(p)/t.largest))}if(e.pixels(i,a,c*s,l*s,{width:c,height:l,data:d}),e.rect(i-.5,a-.5,c*s+1,l*s+1,{stroke:o.rule}),t.sourceColumns>0&&t.sourceColumns<c&&e.path(`M${i+t.sourceColumns*s} ${a-8}V${a+l*s}`,{stroke:o.ink,width:2}),Ot(e,t,n,o,r),!r)return;let u=a+r.row*s;if(e.rect(i,u,c*s,s,{stroke:o.accent,width:1.5}),r.column!==null&&e.rect(i+r.column*s,u,s,s,{stroke:o.accent,width:2.5}),!(s<30))for(let h=0;h<c;h++){let p=t.values[r.row*c+h];if(Math.abs(p)<.05)continue;let f=p.toFixed(1).replace("-","−");e.text(i+(h+.5)*s,u+s/2,f,{fill:o.ink,size:11,anchor:"middle"})}}function qa(e){return e<.002?0:.12+.73*Math.sqrt(e)}function ja(e){let t=e.columns.length,n=e.sourceColumns||t,o=null;if(e.rows.forEach((l,c)=>{for(let d=0;d<n;d++){let u=e.values[c*t+d];!l.special&&u>(o?.value??0)&&(o={row:c,column:d,value:u})}}),o===null)return"";let{row:r,column:s,value:i}=o;return`The ${e.sourceColumns?"source token":"token"} that contributes most: ${V(e.columns[s].label)} makes ${V(e.rows[r].label)} likelier (+${i.toFixed(2)} logit).`}function Va(e,t,n){let o=e.columns.length,r=c=>e.values[n.row*o+c],s=V(e.rows[n.row].label),a=Array.from({length:o},(c,d)=>d).sort((c,d)=>Math.abs(r(d))-Math.abs(r(c))).slice(0,3).map(c=>`${V(e.columns[c].label)} ${ps(r(c))}`),l=`Its logit is ${t.logits[n.row].toFixed(2)}, without any input ${t.baseline_logits[n.row].toFixed(2)}.`;return n.column===null?`${s}: most by ${a.join(", ")}. ${l}`:`${V(e.columns[n.column].label)} contributes ${ps(r(n.column))} to ${s}. Most: ${a.join(", ")}. ${l}`}function Ka(e){return`Here within ${(Math.max(...e.completeness)*100).toFixed(1)} % (${e.steps} steps).`}function ps(e){return(e<0?"−":"+")+Math.abs(e).toFixed(2)}var[Xa,Qa]=[78,140],Ya=16,nt=38,Za=44,po=8,Ja=26;function Ve(e,t){return e.status[t]!=="dropped"}function Mn(e,t,n=0){let o=Math.floor(Math.max(Xa,Math.min(Qa,(n-16)/(t+1)))),r=o-Ya,s=Array.from({length:t+1},()=>[]);e.step.forEach((d,u)=>{d<=t&&s[d].push(u)});let i=d=>e.total[d]??-1/0,a=new Map,l=0;s.forEach((d,u)=>{d.sort((p,f)=>Number(Ve(e,f))-Number(Ve(e,p))||i(f)-i(p));let h=Ja;d.forEach((p,f)=>{f>0&&!Ve(e,p)&&Ve(e,d[f-1])&&(h+=8),a.set(p,{candidate:p,x:po+u*o,y:h,rank:f+1}),h+=Za}),l=Math.max(l,h)});let c=po+t*o+r+8;return{nodes:a,steps:s,lastStep:t,step:o,node:r,width:c,height:l+4}}function zt(e,t){let n=[t];for(;e.step[n[0]]>0;)n.unshift(e.parent[n[0]]);return n}function fs(e,t,n){let o=Math.floor((t-po)/e.step);return e.steps[o]?.find(s=>{let i=e.nodes.get(s);return t>=i.x&&t<=i.x+e.node&&n>=i.y&&n<=i.y+nt})??null}function gs(e,t,n,o){let r=e.step[n],s=t.steps[r],i=s.indexOf(n);return o==="ArrowUp"?s[Math.max(0,i-1)]:o==="ArrowDown"?s[Math.min(s.length-1,i+1)]:o==="ArrowLeft"?e.parent[n]:o==="ArrowRight"?t.steps[r+1]?.find(a=>e.parent[a]===n)??n:null}var ho=new WeakMap;function fo(e,t,n,o,r){let s=new Set(t.lineage);for(let a=1;a<=o.lastStep;a++)e.text(o.nodes.get(0).x+a*o.step+o.node/2,10,String(a),{fill:r.muted,size:11,anchor:"middle"});let i=[...o.nodes.keys()].sort((a,l)=>Number(s.has(a))-Number(s.has(l))||Number(Ve(t,a))-Number(Ve(t,l)));for(let a of i){if(a===0)continue;let l=Ve(t,a),c=s.has(a)?{stroke:r.hue,width:3.5}:l?{stroke:r.hue,width:1.2,opacity:.75}:{stroke:r.muted,width:.8,opacity:.35};e.path(ys(t,o,a),c)}for(let a of i)ws(e,t,n,o,r,a,s.has(a))}function bs(e,t,n,o,r,s){let i=zt(t,s);for(let a of i.slice(1))e.path(ys(t,o,a),{stroke:r.accent,width:2});for(let a of i){ws(e,t,n,o,r,a,t.lineage.includes(a));let l=o.nodes.get(a);e.rect(l.x-1,l.y-1,o.node+2,nt+2,{stroke:r.accent,width:a===s?2.5:1.2,radius:t.status[a]==="finished"?12:5})}}function ws(e,t,n,o,r,s,i){let{x:a,y:l}=o.nodes.get(s),c=Ve(t,s);e.rect(a,l,o.node,nt,{fill:r.page,stroke:c?r.hue:r.muted,width:i?3:c?1.2:.8,dash:c?void 0:"3 3",radius:t.status[s]==="finished"?nt/2:4});let d=c?r.ink:r.muted,u=s===0?"start":el(t,n,s),h=me(u,12,r.font,o.node-8),p=s===0;if(e.text(a+o.node/2,l+(p?nt/2:12),h,{fill:d,size:12,anchor:"middle",weight:i?700:400}),p)return;let f=Math.exp(t.logprob[s]??-1/0);e.text(a+o.node/2,l+25,Y(f),{fill:r.muted,size:11,anchor:"middle"});let b={x:a+8,y:l+nt-6,width:o.node-16};e.rect(b.x,b.y,b.width,3,{fill:r.rule}),e.rect(b.x,b.y,Math.max(1,f*b.width),3,{fill:c?r.hue:r.muted})}function go(e,t,n,o=400){let r=n.slice(1).map(s=>t[e.token[s]]);return xs(t)?we(r,o):we(r.map(s=>s&&{...s,text:`${s.text} `}),o)}function el(e,t,n){let o=t[e.token[n]],r=e.step[n]>1&&o?.role==="text"&&!o.text.startsWith(" ");return xs(t)?de(o,r,12):de(o,!1,12)}function xs(e){return ho.has(e)||ho.set(e,Object.values(e).some(t=>/\s/.test(t.text))),ho.get(e)}function ys(e,t,n){let[o,r]=[t.nodes.get(e.parent[n]),t.nodes.get(n)],s=nt/2;return Lt([o.x+t.node,o.y+s],[r.x,r.y+s])}var ks={name:"search",title:"Search",applies:e=>e.search!==null&&e.search.step.length>1,mount:tl};function tl({doc:e,store:t,live:n}){let o=e.search,r={...e.vocabulary},s=new ke(async k=>{let $=o.continuations[k];if($)return $;let S=await n.continue(Number(k));return Object.assign(r,S.vocabulary),S.continuation},()=>t.notify()),i=m("p",{class:"fact"}),a=m("div",{class:"controls"}),l=m("div",{class:"stage",tabindex:0,role:"application","aria-label":"Candidates of the search by step and rank. Arrow keys move, Escape leaves."}),c=m("div",{class:"scroller"},l),d=m("p",{class:"readout",role:"status","aria-live":"polite"}),u=m("div",{class:"card"}),h=m("section",{class:"beam","aria-label":"Beam search"},m("h2",{},ol(o)),i,a,d,c,al(),u),p=Mn(o,o.winner_step),f=null,b=null,g=k=>{let $=l.getBoundingClientRect();return fs(p,(k.clientX-$.left)/Ne(),(k.clientY-$.top)/Ne())};l.addEventListener("pointermove",k=>t.set({pointed:g(k)})),l.addEventListener("pointerleave",()=>t.set({pointed:null})),l.addEventListener("click",k=>t.set({candidate:g(k)})),l.addEventListener("keydown",k=>{if(k.key==="Escape")return t.set({candidate:null});if(!k.key.startsWith("Arrow"))return;k.preventDefault();let $=t.state.candidate,S=$===null||!p.nodes.has($)?0:gs(o,p,$,k.key);if(S===null)return;t.set({candidate:S,pointed:null});let E=p.nodes.get(S);(E.x<c.scrollLeft||E.x+p.node>c.scrollLeft+c.clientWidth)&&(c.scrollLeft=E.x-c.clientWidth/2)});function w(k){let{state:$}=t,S=ae();if(k.size===0||k.has("unfolded")){p=Mn(o,$.unfolded?o.last_step:o.winner_step,h.clientWidth),l.dataset.step=String(p.step);let F=new ot(p.width,p.height,S.font);fo(F,o,r,p,S),f?.remove(),f=F.element,f.setAttribute("aria-hidden","true"),l.style.width=`${p.width}px`,l.style.height=`${p.height}px`,l.prepend(f),i.textContent=rl(o),j(a,x(),L())}let E=$.pointed??$.candidate,I=new ot(p.width,p.height,S.font);for(let F of new Set([$.candidate,$.pointed]))F!==null&&p.nodes.has(F)&&bs(I,o,r,p,S,F);b?.remove(),b=I.element,b.setAttribute("aria-hidden","true"),l.append(b),d.textContent=E===null?il(n.available):sl(e,o,r,p,E),u.hidden=$.candidate===null||$.candidate===0,u.hidden||j(u,...v($.candidate))}function x(){let k=o.last_step-o.winner_step;if(k<=0)return null;let $=k===1?"step":"steps",S=t.state.unfolded?`Hide the last ${k===1?"":`${k} `}${$}`:`Show ${k} more ${$}`;return m("button",{type:"button",onclick:()=>t.set({unfolded:!t.state.unfolded})},S)}function L(){return he(()=>"search",()=>p,(k,$)=>fo(k,o,r,p,$))}function v(k){let $=zt(o,k),S=go(o,r,$),E=[["Status",vs[o.status[k]]],["Token",`${de(r[o.token[k]])}, probability ${$s(o,k)}`],["Log-probability",qt(o.total[k])],["Score",`${qt(o.score[k])} (the winner's: ${qt(o.score[o.winners[0]])})`]],I=m("dl",{},...E.flatMap(([F,D])=>[m("dt",{},F),m("dd",{},D)]));return[m("p",{dir:"auto"},m("strong",{},V(S))),I,...T(k)]}let A=k=>e.hypotheses.findIndex($=>$.candidate===k);async function M(k){if(A(k)<0)try{let $=await n.hypothesis(k);Object.assign(e.blobs,$.blobs),e.hypotheses.push($.hypothesis)}catch($){d.textContent=$ instanceof Error?$.message:String($);return}t.set({view:"alignment",hypothesis:A(k),hover:null,locked:null})}function T(k){if(o.status[k]==="finished"&&e.hypotheses.length>0&&(n.available||A(k)>=0))return[m("p",{},m("button",{type:"button",onclick:()=>{M(k)}},"Show its alignment"))];if(o.lineage.includes(k))return[m("p",{class:"small"},"It is part of the winner.")];if(!o.continuations[k]&&!n.available)return[m("p",{class:"small"},"A live page (regard look) shows where this hypothesis would have led.")];let $=s.read(String(k));if(!$){let R=s.problem(String(k));return[m("p",{class:"small"},R??"Continuing this hypothesis …")]}let S=we($.tokens.slice(0,$.forced).map(R=>r[R])),E=o.score[o.winners[0]],I=E===null?null:$.score-E,F=I===null?"":I>1e-6?" Higher than the winner: the search missed it.":` ${(-I).toFixed(2)} lower than the winner (higher is better).`,D=Q($.text),y=nl(D,S),C=y?[m("mark",{},D.slice(0,y)),D.slice(y)]:[D];return[m("p",{dir:"auto"},"If the model had to begin this way: ",...C),m("p",{class:"small"},`Score ${qt($.score)}.${F} The same search continued it.`)]}return{element:h,update:w}}var vs={open:"kept and extended",finished:"finished",dropped:"dropped: not among the best of its step",beaten:"open when the search ended: it could not win any more"};function nl(e,t){let n=t.replace(/\s/g,""),o=0;for(let r=0;r<e.length;r++)if(!/\s/.test(e[r])){if(o===n.length)return r;if(e[r]!==n[o++])return 0}return o===n.length?e.length:0}function ol(e){let t=e.settings.beam_size;return e.settings.search==="greedy"?"Greedy search":`Beam search, ${String(t)} hypotheses per step`}function rl(e){let t=Mn(e,e.winner_step),n=e.lineage.slice(1).map(s=>t.nodes.get(s)?.rank??1),o=Math.max(...n),r=[`The winner ended at step ${e.winner_step}.`];return r.push(o===1?"It ranked first at every step.":`It was not always the best: at step ${n.indexOf(o)+1} it ranked ${o} of ${t.steps[n.indexOf(o)+1].length}.`),e.last_step>e.winner_step?r.push(`The search continued to step ${e.last_step} to see whether a longer hypothesis wins.`):e.end==="max_new_tokens"&&r.push("It ended at the maximum length."),r.join(" ")}function sl(e,t,n,o,r){if(r===0)return`The search starts from the text ${V(Q(e.text,80))}.`;let s=go(t,n,zt(t,r),120),i=o.nodes.get(r)?.rank,a=i?`rank ${i}, `:"";return`Step ${t.step[r]}, ${a}${vs[t.status[r]]}: ${V(s)}. Token probability ${$s(t,r)}, score ${qt(t.score[r])}.`}function il(e){return Ee("a hypothesis","to read it",e?"Click a dropped one to see where it would have led":"Click to pin")}function $s(e,t){return ie(Math.exp(e.logprob[t]??-1/0))}function qt(e){return e===null?"−∞":e.toFixed(2).replace("-","−")}function al(){let e=(t,n)=>m("span",{},m("i",{class:t}),n);return m("div",{class:"legend small"},e("winner","winner"),e("","kept"),e("finished","finished"),e("dropped","dropped"),m("span",{},"number and bar: probability of the token"))}var Ms=.005,bo=Math.log(1.05);function Ln(e){return Object.entries(e.delta).flatMap(([t,n])=>n.flatMap((o,r)=>o.flatMap((s,i)=>s===null?[]:[{key:`${t}.${r}.${i}`,group:t,layer:r,head:i,delta:s}])))}function Ls(e){let t=Ln(e).reduce((n,o)=>n&&n.delta<=o.delta?n:o,null);return t&&t.delta<=-bo?t:null}function Ts(e){let t=Ln(e).reduce((n,o)=>n&&n.delta>=o.delta?n:o,null);return t&&t.delta>=bo?t:null}var wo=e=>Math.abs(e)>=Ms;function ll(e,t){return{before:Math.exp(e.baseline),after:Math.exp(e.baseline+t)}}function Tn(e,t,n=1){let o=n===1?"Without this head":`Without these ${n} heads`,{before:r,after:s}=ll(e,t),[i,a]=[Y(r),Y(s)];return wo(t)?i===a?`${o} ${e.output} is ${xo(t)} ${t<0?"less":"more"} probable.`:`${o} the probability of ${e.output} ${t<0?"falls":"rises"} from ${i} to ${a}.`:`${o} ${e.output} stays as probable: ${n===1?"it does":"they do"} nothing here that the other heads do not replace.`}function xo(e){let t=Math.exp(Math.abs(e));if(t<10)return`${t.toFixed(t<1.095?2:1)} times`;let n=Number(t.toPrecision(2));return`about ${n<1e9?n.toLocaleString("en"):n.toExponential(0)} times`}function jt(e){let t=Math.exp(Math.abs(e)),n=t<100?t.toPrecision(2):t<1e4?t.toFixed(0):`e${(Math.abs(e)/Math.LN10).toFixed(0)}`;return Math.abs(e)<bo?"":(e<0?"÷":"×")+n.replace(/^e/,"1e")}var yo=e=>(e<0?"−":"+")+Math.abs(e).toFixed(2);function Ss(e,t){let n=e.ablation?.outputs??[],o=e.sequences.target??[],r=[];return n.forEach((s,i)=>{let a=s===null?void 0:o[s];if(!a||a.logprob===void 0)return;let l=r.at(-1),[c,d]=[a.logprob??-1/0,t[i]??-1/0];l&&a.word!==null&&l.tokens[0].word===a.word?(l.tokens.push(a),l.outputs.push(i),l.total+=c,l.change+=d):r.push({tokens:[a],outputs:[i],total:c,change:d,label:"",before:0,after:0})}),r.map(({tokens:s,outputs:i,total:a,change:l})=>({outputs:i,label:s[0].role==="special"?s[0].text:we(s,60),before:Math.exp(a),after:Math.exp(a+l)}))}function Es(e){let t=o=>Math.log(o.after/o.before),n=e.reduce((o,r)=>o&&t(o)<=t(r)?o:r,null);return n&&n.before>0&&t(n)<=-Ms?n:null}var cl=e=>/^\d+$/.test(e.trim())?`Label ${e.trim()}`:e.trim();function As(e,t){let n=({labels:o,probabilities:r})=>`${cl(o[0])} ${Y(r[0])}`;return e.predictions.flatMap((o,r)=>{let s=t[r];if(!s?.labels.length||!o.labels.length)return[];if(e.predictions.length>1&&o.labels[0]===s.labels[0])return[];let i=o.position===null?void 0:e.sequences.source?.[o.position];return[`${i&&i.role==="text"?`${V(we([i],30))}: `:""}${n(o)} → ${n(s)}`]})}function Tt(e){let t=e.split(".");return{group:t.slice(0,-2).join("."),layer:Number(t.at(-2)),head:Number(t.at(-1))}}function vo(e,t){let o=Math.floor((t-40)/e.heads),r=Math.max(9,Math.min(112,o));return{pitch:r,cell:r-(r>20?4:1),left:40,top:Cs,width:40+e.heads*r,height:Cs+e.layers*ko(r)}}var ko=e=>e>80?46:Math.min(e,36),Cs=32;function Rs(e,t,n,o,r,s){let{left:i,top:a,pitch:l,cell:c}=o,[d,u]=[ko(l),ko(l)-(l-c)],h=Math.max(1e-9,...Object.values(t.delta).flat(2).map(f=>Math.abs(f??0))),p={fill:r.muted,size:11};e.text(i,7,"head",p),e.text(i-8,23,"layer",{...p,anchor:"end"});for(let f=0;f<n.heads;f++)(l>=18||f%4===0)&&e.text(i+f*l+c/2,23,String(f+1),{...p,anchor:"middle"});t.delta[n.name].forEach((f,b)=>{let g=a+b*d;(d>=14||b%2===0)&&e.text(i-8,g+u/2,String(b+1),{...p,anchor:"end"}),f.forEach((w,x)=>{let L=i+x*l;if(w===null)return e.rect(L,g,c,u,{stroke:r.rule});let v=.62*Math.abs(w)/h;e.rect(L,g,c,u,{fill:w<0?r.hue:r.minus,opacity:v}),e.rect(L+.5,g+.5,c-1,u-1,{stroke:r.rule}),l>=40&&e.text(L+c/2,g+u/2,jt(w),{fill:r.ink,size:l>80?15:12,anchor:"middle"})})});for(let{group:f,layer:b,head:g}of s.map(Tt))f===n.name&&e.rect(i+g*l,a+b*d,c,u,{stroke:r.accent,width:3})}var Ps={name:"break",title:"Break it",applies:e=>e.ablation!==null&&e.attention.length>0,mount:ul};function ul({doc:e,store:t,blobs:n,live:o}){let r=e.ablation,s=e.attention.filter(y=>r.delta[y.name]),i=new Map(Ln(r).map(y=>[y.key,y])),[a,l]=[Ls(r),Ts(r)],c=Math.max(1e-9,...[...i.values()].map(({delta:y})=>Math.abs(y))),d=new ke(y=>o.ablate(y.split(",")),()=>t.notify()),u=m("p",{class:"readout",role:"status","aria-live":"polite"}),h=m("div",{class:"card result"}),p=x("All on",()=>t.set({headsOff:[]})),f=new Map,b=s.map(T),g=he(()=>`break.${L().name}`,()=>vo(L(),900),(y,C)=>{let R=L();Rs(y,r,R,vo(R,900),C,t.state.headsOff)}),w=m("section",{class:"break","aria-label":"Break it"},m("h2",{},"What breaks if a head is switched off?"),m("p",{class:"fact"},v()),m("div",{class:"controls"},a&&x("Switch off the head that matters most",()=>t.set({headsOff:[a.key]})),l&&x("Switch off the head that hurts most",()=>t.set({headsOff:[l.key]})),p,g),m("div",{class:"grids"},...b),u,h,m("div",{class:"legend small"},m("span",{},m("i",{class:"plus"}),"the head helps: without it the output is less probable (÷)"),m("span",{},m("i",{class:"minus"}),"without it the output is more probable (×)")),m("p",{class:"small"},A()));function x(y,C){return m("button",{type:"button",onclick:C},y)}function L(){let[y]=t.state.headsOff;return s.find(C=>y&&Tt(y).group===C.name)??s[0]}function v(){return a?`${wt(a.group,a.layer,a.head)} matters most. ${Tn(r,a.delta).replace("this head","it")}`:`No single head is needed: without any of them ${r.output} stays about as probable.`}function A(){let y=i.size,C=Object.keys(r.texts).length,R=e.model.family!=="encoder_only"&&C<y&&!o.available?` It has the new output of ${C} of ${y} heads, those with the largest effect: the rest would have taken long.`:"";return`${o.available?"Switch off as many heads as you like.":`A saved page switches off one head at a time: it has no model to try combinations with (regard look has).${R}`} ÷8.0: the output is 8 times less probable without the head. Heads can replace each other, so a small change does not mean that a head does nothing.`}function M(y){let{headsOff:C}=t.state,R=C.filter(B=>B!==y);R.length<C.length?t.set({headsOff:R}):t.set({headsOff:o.available?[...C,y]:[y]})}function T(y){let C=m("div",{class:y.heads>8?"switches dense":"switches",style:`--heads: ${y.heads}`,"data-group":y.name});C.append(m("span",{class:"small"},"layer"));for(let R=0;R<y.heads;R++)C.append(m("span",{class:"small"},R===0&&y.heads<=8?"head 1":String(R+1)));for(let R=0;R<y.layers;R++){C.append(m("span",{class:"small"},String(R+1)));for(let B=0;B<y.heads;B++){let P=`${y.name}.${R}.${B}`,_=i.get(P)?.delta??0,N=Math.round(42*Math.abs(_)/c),K=_<0?"--hue":"--minus",G=m("button",{type:"button",role:"switch",class:"switch",tabindex:R+B===0?0:-1,"aria-label":`${wt(y.name,R,B)}${_?`, ${jt(_)||"no effect"}`:""}`,title:`${wt(y.name,R,B)}: ${yo(_)} nats`,style:`--effect: color-mix(in srgb, var(${K}) ${N}%, var(--page))`,onclick:()=>M(P),onfocus:()=>k(P),onblur:()=>k(null),onpointerenter:()=>k(P),onpointerleave:()=>k(null)},m("i",{"aria-hidden":"true"}),m("span",{"aria-hidden":"true"},jt(_)));G.dataset.key=P,f.set(P,G),C.append(G)}}return C.addEventListener("keydown",R=>{let B={ArrowUp:[-1,0],ArrowDown:[1,0],ArrowLeft:[0,-1],ArrowRight:[0,1]},P=R.target.dataset.key;if(R.key==="Escape")return t.set({headsOff:[]});let _=B[R.key];if(!_||!P)return;R.preventDefault();let{layer:N,head:K}=Tt(P),G=f.get(`${y.name}.${N+_[0]}.${K+_[1]}`);G&&(f.get(P).tabIndex=-1,G.tabIndex=0,G.focus())}),m("div",{class:"group"},m("h3",{},ve[y.name]),m("div",{class:"scroller"},C))}function k(y){let C=y===null?void 0:i.get(y);u.textContent=C?`${wt(C.group,C.layer,C.head)}. ${Tn(r,C.delta)}`:"Every switch is a head. Switch one off to see what changes without it."}function $(y){let[C]=y;if(y.length===1){let{group:R,layer:B,head:P}=Tt(C),_=r.token_deltas?.[R],N=_&&e.blobs[_]?n.read(_):void 0,K=N?.shape[2]??0,G=(B*(N?.shape[1]??0)+P)*K,J={text:r.texts[C],delta:i.get(C)?.delta,token_deltas:N&&Array.from(N.codes.subarray(G,G+K)),predictions:r.predictions?.[C]};if(J.text!==void 0||J.predictions!==void 0||!o.available)return J}return d.read(y.join())??null}function S(y){if(y.length===0)return[m("p",{class:"retyped",dir:"auto"},Q(et(e))),m("p",{class:"small"},"All heads are on.")];let C=y.map(Tt).map(({group:W,layer:z,head:oe})=>wt(W,z,oe)),R=m("p",{class:"small"},`Off: ${C.slice(0,6).join("; ")}${C.length>6?"; …":""}`),B=$(y);if(!B){let W=y.length===1?"Running the model without this head …":"Running the model without these heads …";return[R,m("p",{},d.problem(y.join())??W)]}let{delta:P,token_deltas:_,predictions:N,text:K}=B,G=_?Ss(e,_):[],J=P===void 0?"Not measured.":Tn(r,P,y.length),O=P===void 0?"":`${xo(P)} ${P<0?"less":"more"} probable; ${yo(P)} nats`;return[R,...N?E(N):I(K),m("p",{class:"effect",title:O},J),...F(G,P)]}function E(y){let C=As(e,y),R=e.predictions.some((P,_)=>P.labels[0]!==y[_]?.labels[0]),B=e.predictions.length===1;return[...(C.length?C.slice(0,12):[et(e)]).map(P=>m("p",{class:"retyped",dir:"auto"},Q(P))),m("p",{class:"small verdict"},R?B?"The label changes.":`${C.length} of ${e.predictions.length} predictions change.`:B?"The label stays the same.":"All predictions stay the same.")]}function I(y){if(e.model.family==="encoder_only")return[m("p",{class:"retyped",dir:"auto"},Q(et(e)))];if(y===void 0)return[m("p",{class:"small verdict"},"This page does not have the new output of this head; regard look shows it.")];let R=kt(Q(e.output,4e3).trim(),Q(y,4e3).trim()).map(({kind:P,text:_})=>P==="same"?_:m(P==="removed"?"del":"ins",{},_)),B=y===e.output;return[m("p",{class:"retyped",dir:"auto"},...R),m("p",{class:"small verdict"},B?"The output stays the same.":y.trim()?"The output changes.":"Nothing is left.")]}function F(y,C){let R=Es(y);if(!R||C===void 0||!wo(C)||y.length<2)return[];let B=N=>Math.log(N.after/N.before)||0,P=Math.max(...y.map(N=>Math.abs(B(N)))),_=y.map(N=>{let K=B(N),G=P>0?Math.round(42*Math.abs(K)/P):0,J=K<0?"--hue":"--minus",O=`${Y(N.before)} → ${Y(N.after)}`;return m("span",{class:"word",title:O,style:`background: color-mix(in srgb, var(${J}) ${G}%, var(--page))`},Q(N.label,40))});return[m("p",{class:"hurt"},`${V(Q(R.label,40))} suffers most: from ${Y(R.before)} to ${Y(R.after)}.`),m("p",{class:"words",dir:"auto"},..._.slice(0,80))]}function D(){let{headsOff:y}=t.state;for(let[C,R]of f)R.setAttribute("aria-checked",String(!y.includes(C)));p.disabled=y.length===0,j(h,...S(y)),u.textContent||k(null)}return{element:w,update:D}}var at=e=>e?.bytes?`‹${e.bytes}›`:e?.text??"?";function Fs(e,t){return{isSameModel:e.model.sha256===t.model.sha256,isSameInput:e.text===t.text,input:kt(e.text,t.text),output:ml(Ds(e),Ds(t)),sure:[xn(e),xn(t)],split:dl(e,t)}}function Ds(e){if(!e.sequences.target)return Re(e).told.map(o=>e.predictions[o]).filter(o=>o.labels.length>0).map(({labels:o,probabilities:r})=>({text:o[0].trim(),key:o[0].trim(),probability:r[0]}));let t=_e(e).filter(o=>o.role!=="special"),n=[];return t.forEach((o,r)=>{ze(t,r)?n[n.length-1].push(o):n.push([o])}),n.map(o=>({text:we(o,60),key:o.map(at).join("").trim(),probability:Math.exp(o.reduce((r,s)=>r+(s.logprob??-1/0),0))}))}function ml(e,t){let n=o=>o.map(r=>r.key);return fn(n(e),n(t)).map(o=>({kind:o.kind,a:o.kind==="added"?null:e[o.a],b:o.kind==="removed"?null:t[o.b]}))}function Hs(e,t){return Mo(_e(e).map(at),_e(t).map(at))}function _e(e){return(e.sequences.target??[]).filter(t=>t.logprob!==void 0)}function $o(e,t){let{next:n}=e,o=t+(e.sequences.target??[]).length-_e(e).length-(n?.first??0);return(n?.tokens[o]??[]).map((r,s)=>({text:de(e.vocabulary[r]),key:at(e.vocabulary[r]),probability:n.probabilities[o][s]}))}function _s(e,t,[n,o]){let[r,s]=[$o(e,n),$o(t,o)],i=(c,d)=>c.find(u=>u.key===d)?.probability??null,a=new Map([...r,...s].map(c=>[c.key,c.text])),l=c=>Math.max(c.a??0,c.b??0);return[...a].map(([c,d])=>({key:c,text:d,a:i(r,c),b:i(s,c)})).sort((c,d)=>l(d)-l(c))}function Lo(e,t){let[n,o]=[_e(e),_e(t)],r=Math.min(n.length,o.length);for(let s=0;s<r;s++)if(at(n[s])!==at(o[s]))return s;return null}function dl(e,t){let n=Lo(e,t);if(n===null)return null;let o=[e,t].map(i=>_e(i)[n]),r=(i,a)=>$o(i,n).find(l=>l.key===at(a))?.probability??null,s=(i,a,l)=>({text:de(a),probability:Math.exp(a.logprob??-1/0),ofOther:r(i,l)});return{before:we(_e(e).slice(0,n),400),a:s(e,o[0],o[1]),b:s(t,o[1],o[0])}}function Mo(e,t){let n=[],[o,r]=[[],[]],s=()=>{o.length===r.length&&o.forEach((i,a)=>n.push([i,r[a]])),[o,r]=[[],[]]};for(let i of fn(e,t))i.kind==="removed"?o.push(i.a):i.kind==="added"?r.push(i.b):(s(),n.push([i.a,i.b]));return s(),n}function Os(e,t){let n=a=>a.map(l=>l.label),o=Mo(n(e.rows),n(t.rows)),r=Mo(n(e.columns),n(t.columns)),s=(a,l)=>a.label===l.label?a:{...a,label:`${a.label} → ${l.label}`},i=new Float32Array(o.length*r.length);return o.forEach(([a,l],c)=>r.forEach(([d,u],h)=>i[c*r.length+h]=t.value(l,u)-e.value(a,d))),{rows:o.map(([a,l])=>s(e.rows[a],t.rows[l])),columns:r.map(([a,l])=>s(e.columns[a],t.columns[l])),rowPairs:o,columnPairs:r,values:i}}var Is=e=>`${e} ${e===1?"word":"words"}`,pl=e=>`${Is(e)} ${e===1?"differs":"differ"}`,it=e=>V(Q(e.trim()||"␣",40));function Bs(e){let{isSameModel:t,isSameInput:n,input:o,output:r,sure:s,split:i}=e,a=[],l=t?"One model":"Two models";n?a.push(`${l}, the same input.`):a.push(`${l}, two inputs: ${pl(Math.max(1,Mr(o)))}.`),a.push(hl(r));let[c,d]=s;c&&d&&c.kind===d.kind&&a.push(fl(c,d)),i&&a.push(bl(i));let u=wl(r);if(u&&Math.abs(u.b.probability-u.a.probability)>=.01){let h=u.b.probability>u.a.probability?"likelier":"less likely",[p,f]=[u.a,u.b].map(b=>Y(b.probability));a.push(`Of the words in both outputs, ${it(u.a.text)} changes most: ${h} in B, ${f} instead of ${p}.`)}return a}function hl(e){let t=e.filter(i=>i.kind!=="same");if(e.length===0)return"Both outputs are empty.";if(t.length===0)return"The outputs are the same.";let[n,o]=[t.filter(i=>i.a),t.filter(i=>i.b)];if(e.length===2&&n.length===1&&o.length===1)return`A says ${it(n[0].a.text)}, B says ${it(o[0].b.text)}.`;let r=Math.max(e.filter(i=>i.a).length,e.filter(i=>i.b).length),s=Math.max(n.length,o.length);return`${s} of ${Is(r)} of the output ${s===1?"differs":"differ"}.`}function fl(e,t){let[n,o]=[Y(e.value),Y(t.value)],r=e.kind==="token"?" per token":"";if(n===o){let s=Math.max(e.value,t.value)/Math.max(Math.min(e.value,t.value),Number.MIN_VALUE);return s<1.5?`A and B are equally sure: ${n}${r}.`:`${e.value>t.value?"A":"B"} is surer: its output is about ${gl(s)} times as likely (both ${n}${r}).`}return e.value<t.value?`B is surer: ${o}${r} instead of ${n}.`:`A is surer: ${n}${r}, B ${o}.`}var gl=e=>e<10?e.toFixed(1):e<1e6?Math.round(e).toLocaleString("en"):"a million or more";function bl({before:e,a:t,b:n}){let o=e?`After ${it(e)}`:"At the start",r=(a,l,c)=>a===null?"":` (${l} gives ${it(c)} ${Y(a)})`,s=`A writes ${it(t.text)} with ${Y(t.probability)}${r(n.ofOther,"B",t.text)}`,i=`B writes ${it(n.text)} with ${Y(n.probability)}${r(t.ofOther,"A",n.text)}`;return`${o}, ${s}; ${i}.`}function wl(e){let t=o=>Math.abs(o.b.probability-o.a.probability),n=e.filter(o=>o.kind==="same");return n.length?n.reduce((o,r)=>t(r)>t(o)?r:o):null}function Ns(e,t,n){let o=(l,c,d)=>c.length+d.length-2*l.length,r=o(e.rowPairs,t.rows,n.rows),s=o(e.columnPairs,t.columns,n.columns);if(r+s===0)return"Every cell of A is compared with one of B.";let i=(l,c)=>l?[`${l} ${c}${l===1?"":"s"}`]:[];return`Rows and columns are paired by equal tokens; ${[...i(r,"row"),...i(s,"column")].join(" and ")} without a counterpart ${r+s===1?"is":"are"} left out.`}function lt({store:e,blobs:t,live:n},o=16){let r=new ke(async i=>{let[a,l,c]=i.split("|");return Be(await n.map(a,Number(l),Number(c)))},()=>e.notify(),o),s=(i,a,l)=>`${i.name}|${a}|${l}`;return{read(i,a,l){let c=i.maps[`${a}.${l}`];return c?t.read(c):n.available?r.read(s(i,a,l)):null},problem:(i,a,l)=>r.problem(s(i,a,l))}}var Gs={name:"compare",title:"Compare",applies:e=>e.against!==void 0,mount:xl};function xl(e){let{doc:t,store:n}=e,o=t.against,r=Fs(t,o),s=new ke(u=>Be(o.blobs[u]),()=>n.notify()),i=new vt({...o,live:t.live,session:t.session},!0),a=[lt(e),lt({doc:o,store:n,blobs:s,live:i})],l=vl(e,o),c=$l(e,o,r,a);return{element:m("section",{class:"compare","aria-label":"Compare"},m("h2",{},yl(r)),m("ul",{class:"facts"},...Bs(r).map(u=>m("li",{},u))),m("div",{class:"sides"},Ws("A",t,r),Ws("B",o,r)),m("p",{class:"small"},"Underlined: only on this side. Below each word of the output: its probability."),l?.element,c.element),update:u=>{let h=u.size>0&&[...u].every(p=>p==="hover"||p==="locked");h||l?.update(),c.update(h)}}}function yl({isSameModel:e,isSameInput:t}){return t?e?"What differs between two runs?":"What differs between two models?":e?"What differs between two inputs?":"What differs between two models and inputs?"}function Ws(e,t,{input:n,output:o}){let r=e==="A"?"added":"removed",s=n.filter(c=>c.kind!==r).flatMap(({kind:c,text:d})=>{let u=Q(d.trimStart());return[/^\s/.test(d)?" ":"",c==="same"?u:m("mark",{},u)]}),i=e==="A"?"a":"b",a=o.filter(c=>c.kind!==r).map(c=>kl(c[i],c.kind!=="same")),l=$t(Re(t).untagged);return m("div",{class:"card"},m("h3",{},[e,Q(t.model.name,60)].filter(Boolean).join(": ")),m("p",{class:"small",dir:"auto"},...s),m("p",{class:"words",dir:"auto"},...a.length?a:[Q(et(t),200)]),l?m("p",{class:"small"},l):null)}function kl(e,t){let n=Q(e.text||"␣",60);return m("span",{},t?m("mark",{},n):n,m("span",{class:"small"},Y(e.probability)))}function vl({doc:e,store:t},n){if(!e.next||!n.next)return null;let[o,r]=[_e(e),_e(n)],s=Math.min(e.next.tokens.length,n.next.tokens.length),i=Hs(e,n).filter(([w,x])=>w<s&&x<s),a=Lo(e,n);if(a!==null&&a<s&&!i.some(([w])=>w===a)&&(i.push([a,a]),i.sort((w,x)=>w[0]-x[0])),i.length===0)return null;let l=Math.max(0,i.findIndex(([w])=>w===a)),c=[rt(o),rt(r)],d=m("div",{class:"chips scroller",role:"group","aria-label":"Output position"}),u=m("p",{class:"fact"}),h=m("table",{class:"next"}),p=m("div",{},m("h3",{},"What each would write next"),d,u,h),f=i.map(([w,x],L)=>{let[v,A]=[c[0][w],c[1][x]];return m("button",{type:"button",onclick:()=>t.set({compared:L})},v===A?v:`${v} → ${A}`)});d.append(...f),d.addEventListener("keydown",w=>{let x={ArrowLeft:-1,ArrowRight:1}[w.key];if(!x)return;w.preventDefault();let L=Math.max(0,Math.min(i.length-1,b()+x));t.set({compared:L}),f[L].focus()});let b=()=>Math.min(t.state.compared??l,i.length-1);function g(){let w=b();f.forEach((T,k)=>T.setAttribute("aria-pressed",String(k===w)));let[x,L]=i[w],v=a===null||x===L&&x<=a;u.textContent=`${v?"Both wrote the same before this token.":"Each continues its own beginning."} –: less probable than those listed.`;let A=T=>{let k=m("span",{class:"bar"});return k.style.width=`${(T??0)*60}%`,m("td",{},k,T===null?"–":Y(T))},M=_s(e,n,i[w]).slice(0,8).map(T=>m("tr",{},m("th",{scope:"row",dir:"auto"},T.text),A(T.a),A(T.b)));j(h,m("thead",{},m("tr",{},...["Token","A","B"].map(T=>m("th",{scope:"col"},T)))),m("tbody",{},...M))}return{element:p,update:g}}function $l({doc:e,store:t},n,{isSameModel:o},r){let s=e.attention.map(T=>T.name).filter(T=>Sn(n,T));if(s.length===0)return{element:m("p",{class:"fact"},"The two models have no attention of the same kind to compare."),update:()=>{}};let i=m("div",{class:"controls"}),a=m("p",{class:"readout",role:"status","aria-live":"polite"}),l=m("p",{class:"small"}),c=["A","B","B − A"].map(T=>new ce(`Weights of ${T}. Arrow keys move, Escape releases.`,T==="B − A"?{}:{tabindex:-1})),d=c.map(()=>m("h3")),u=c.map((T,k)=>m("div",{},d[k],m("div",{class:"scroller"},T.element))),h=m("div",{class:"maps"},...u),p=m("div",{class:"legend small"},m("span",{},m("i",{class:"plus"}),"more weight in B"),m("span",{},m("i",{class:"minus"}),"more weight in A")),f=m("div",{},m("h3",{},"What one head reads"),i,a,h,p,l),b=[null,null],g=[],w=null,x=()=>w?Fe(t.state.locked??t.state.hover,w):null,L=(T,k)=>{if(!T||!w||k===2)return T;let $=(I,F)=>I.findIndex(D=>D[k]===F),S=$(w.rowPairs,T.row),E=T.column===null?null:$(w.columnPairs,T.column);return S<0?null:{row:S,column:E!==null&&E<0?null:E}};c.forEach((T,k)=>{let $=S=>{let{x:E,y:I}=T.locate(S),F=k===2?w:b[k];return F&&g[k]?L(Ue(F,g[k],E,I),k):null};T.element.addEventListener("pointermove",S=>{let[E,I]=[$(S),t.state.hover];(E?.row!==I?.row||E?.column!==I?.column)&&t.set({hover:E})}),T.element.addEventListener("pointerleave",()=>t.set({hover:null})),T.element.addEventListener("click",S=>t.set({locked:t.state.locked?null:$(S)}))}),c[2].element.addEventListener("keydown",T=>{if(T.key==="Escape")return t.set({locked:null});let $={ArrowUp:[-1,0],ArrowDown:[1,0],ArrowLeft:[0,-1],ArrowRight:[0,1]}[T.key];if(!$||!w)return;T.preventDefault();let S=(F,D)=>Math.max(0,Math.min(D-1,F)),E=x()??{row:-$[0],column:-$[1]},I={row:S(E.row+$[0],w.rows.length),column:S((E.column??0)+$[1],w.columns.length)};t.set({locked:I,hover:null})});function v(T){let k=s.includes(T.group)?T.group:s[0],[$,S]=[Sn(e,k),Sn(n,k)],[E,I]=k===T.group?[T.layer,T.head]:$.default_head,F=T.againstHead,D=F!==null&&F[0]<S.layers&&F[1]<S.heads,[y,C]=o?[E,I]:D?F:S.default_head;return[{group:$,layer:E,head:I},{group:S,layer:y,head:C}]}function A(T){let k=v(T),$={hover:null,locked:null},S=({group:y})=>Array.from({length:y.layers*y.heads},(C,R)=>{let[B,P]=[Math.floor(R/y.heads),R%y.heads];return[`${B}.${P}`,`layer ${B+1}, head ${P+1}`]}),E=(y,C,R)=>Se(y,S(k[C]),`${k[C].layer}.${k[C].head}`,B=>{let[P,_]=B.split(".").map(Number);R(P,_)}),I=y=>{let[C,R]=Sn(e,y).default_head;t.set({group:y,layer:C,head:R,againstHead:null,...$})},F=[e,n].some(y=>Object.values(y.sequences).some(C=>C.some((R,B)=>ze(C,B)))),{group:D}=k[0];return[s.length>1?Se("Attention",s.map(y=>[y,ve[y]]),D.name,I):null,E(o?"Head":"Head of A",0,(y,C)=>t.set({group:D.name,layer:y,head:C,...$})),o?null:E("Head of B",1,(y,C)=>t.set({againstHead:[y,C],...$})),F?Me("Words",T.words,y=>t.set({words:y,...$})):null,he(()=>`compare.${D.name}.${k[0].layer}.${k[0].head}`,()=>g[2]??{width:0,height:0},(y,C)=>w&&Us(y,w,g[2],C,null))]}function M(T){let{state:k}=t,$=ae();if(!T){let E=v(k);j(i,...A(k));let I=[e,n],F=E.map(({group:J,layer:O,head:W},z)=>r[z].read(J,O,W));b=E.map(({group:J},O)=>{let W=F[O];if(!W)return null;let z=qe(I[O],J),oe=re=>fe(re,k.words,!0);return je(W.codes,W.shape[1],oe(z.rows),oe(z.columns))});let[D,y]=b;w=D&&y?Os(D,y):null;let C=F.some(J=>J===null),R=E.map(({group:J,layer:O,head:W},z)=>r[z].problem(J,O,W)).find(Boolean);l.textContent=R??(C?"This file does not have the maps of this head on both sides; choose another head.":w&&D&&y?Ns(w,D,y):"");let B=h.clientWidth<820,P=Math.max(240,B?h.clientWidth-6:(h.clientWidth-48)/3),_=window.innerHeight-h.getBoundingClientRect().top-window.scrollY-56,N=Math.max(0,...[D,y,w].map(J=>J?.rows.length??0)),K=k.present||B?640:Math.min(640,Math.max(_,24*N+90)),G=[D,y,w];c.forEach((J,O)=>{let W=G[O];u[O].hidden=!W,W&&(d[O].textContent=["A","B","B − A"][O],g[O]=He(W,P,$,K),J.describe(g[O].left,g[O].top,g[O].cell),J.draw(g[O].width,g[O].height,z=>{O===2?Us(z,w,g[2],$,null):Ae(z,G[O],g[O],$,{pixelRatio:window.devicePixelRatio||1})}))}),p.hidden=!w}let S=x();c.forEach((E,I)=>{let F=g[I];u[I].hidden||!F||E.drawOverlay(F.width,F.height,D=>{if(!S||!w)return;if(I===2)return Ml(D,w,F,$,S);let y={row:w.rowPairs[S.row][I],column:S.column===null?null:w.columnPairs[S.column][I]};Ze(D,b[I],F,$,y,k.locked!==null)})}),a.textContent=w?S?zs(w,b,S):Ll(w,b):"Reading the maps …",!w&&l.textContent&&(a.textContent=l.textContent)}return{element:f,update:M}}var Sn=(e,t)=>e.attention.find(n=>n.name===t);function Us(e,t,n,o,r){let{cell:s,left:i,top:a}=n,[l,c]=[t.rows.length,t.columns.length],d=Uint32Array.from(t.values,u=>Qe(o.page,u<0?o.minus:o.hue,Math.abs(u)<.002?0:Math.sqrt(Math.abs(u))));l&&c&&e.pixels(i,a,c*s,l*s,{width:c,height:l,data:d}),e.rect(i-.5,a-.5,c*s+1,l*s+1,{stroke:o.rule}),Ot(e,t,n,o,r)}function Ml(e,t,n,o,r){let s=n.top+r.row*n.cell,i=t.columns.length*n.cell;e.rect(n.left,s,i,n.cell,{stroke:o.accent,width:1.5}),r.column!==null&&e.rect(n.left+r.column*n.cell,s,n.cell,n.cell,{stroke:o.accent,width:2.5})}function zs(e,[t,n],o){let r=e.columns.length,s=Array.from(e.values.subarray(o.row*r,(o.row+1)*r)),i=o.column??s.reduce((b,g,w)=>Math.abs(g)>Math.abs(s[b])?w:b,0);if(r===0)return"No column has a counterpart.";let[a,l]=e.rowPairs[o.row],[c,d]=e.columnPairs[i],u=(b,g)=>b.label?V(b.label):`cell ${g+1}`,[h,p]=[t.value(a,c),n.value(l,d)],f=`${p<h?"−":"+"}${ie(Math.abs(p-h))}`;return`${u(e.rows[o.row],o.row)} reads ${u(e.columns[i],i)}: ${ie(h)} in A, ${ie(p)} in B (${f}).`}function Ll(e,t){let{values:n,columns:o}=e;if(n.length===0)return"No token of A has a counterpart in B.";let r=0;n.forEach((i,a)=>r=Math.abs(i)>Math.abs(n[r])?a:r);let s={row:Math.floor(r/o.length),column:r%o.length};return`The largest difference: ${zs(e,t,s)} ${Ee("a cell","to compare it")}`}var ct={entropy:{title:"Entropy",unit:"nats",says:e=>`entropy ${e} nats`},distance:{title:"Distance",unit:"tokens",says:e=>`mean distance ${e} tokens`},previous:{title:"Previous token",unit:"",says:e=>`weight ${e} on the previous token`},first:{title:"First token (attention sink)",unit:"",says:e=>`weight ${e} on the first token`}},Tl=34,To=30;function So(e,t,n){let o=Tl,r=(t-o)/e.heads,s=n?Math.max(30,Math.min(62,Math.floor(r))):Math.max(6,Math.min(20,Math.floor(r))),i=s-(n?8:1),a=To;return{cell:i,pitch:s,left:o,top:a,width:o+e.heads*s,height:a+e.layers*s}}function qs(e,t,n,o,r,s,i){let{cell:a,pitch:l,left:c,top:d}=n,u=p=>l>=18||p%Math.ceil(18/l)===0,h={fill:o.muted,size:11};e.text(c,6,"head",h),e.text(c-6,To/2+6,"layer",{...h,anchor:"end"});for(let p=0;p<t.heads;p++)u(p)&&e.text(c+p*l+a/2,To/2+6,String(p+1),{fill:o.muted,size:11,anchor:"middle"});for(let p=0;p<t.layers;p++)u(p)&&e.text(c-6,d+p*l+a/2,String(p+1),{fill:o.muted,size:11,anchor:"end"});if(r?Sl(e,t,n,o,r):El(e,t,n,o,s),i){let[p,f]=[c+(i.head??0)*l,d+i.layer*l],b=i.head===null?(t.heads-1)*l+a:a,g=r?2.5:1;e.rect(p-g,f-g,b+2*g,a+2*g,{stroke:o.accent,width:r?2.5:2,radius:r?3:0})}}function Sl(e,t,n,o,r){let{cell:s,pitch:i,left:a,top:l}=n,[c,d]=r.shape.slice(2),u=r.codes;for(let h=0;h<t.layers;h++)for(let p=0;p<t.heads;p++){let f=(h*t.heads+p)*c*d,b=u.subarray(f,f+c*d),[g,w]=[a+p*i,l+h*i];e.pixels(g,w,s,s,cn(b,c,d,o.pixels,s*2,s*2)),e.rect(g-.5,w-.5,s+1,s+1,{stroke:o.rule,radius:1})}}function El(e,t,n,o,r){let{cell:s,pitch:i,left:a,top:l}=n,c=Eo(t,r);t.statistics[r].forEach((d,u)=>d.forEach((h,p)=>{let[f,b]=[a+p*i,l+u*i],g=o.ramp[Math.round(255*(h??0)/c)];e.rect(f,b,s,s,h===null?{stroke:o.rule}:{fill:g})}))}function Eo(e,t){return t==="previous"||t==="first"?1:Math.max(1e-9,...e.statistics[t].flat().map(n=>n??0))}function Ao(e,t,n,o){let r=Math.floor((n-t.left)/t.pitch),s=Math.floor((o-t.top)/t.pitch);return r>=0&&r<e.heads&&s>=0&&s<e.layers?{layer:s,head:r}:null}function js(e,t,n,o){let r=w=>t.statistics[w]?.[n]?.[o]??null,[s,i,a,l]=[r("entropy"),r("distance"),r("previous"),r("first")],c=w=>`${Math.round(w*100)} %`;if(a!==null&&a>=.5)return`This head reads the previous token: it gets ${c(a)} of the weight.`;if(l!==null&&l>=.5&&t.name!=="decoder.cross"&&t.column_count>4)return`This head rests on the first token, an attention sink: it gets ${c(l)} of the weight.`;if(s===null)return"";let d=Math.exp(s),u=d<1.5?"one":String(Math.round(d)),h=e.picture?.kind==="image"?"patch":e.picture?"time step":"token",p=t.columns==="source"?e.picture?h:t.name==="decoder.cross"?"source token":h:"token",f=t.rows==="target"?t.name==="decoder.cross"&&t.row_start>0?"generated token":"token":h,b=u==="one"?p:p.endsWith("ch")?`${p}es`:`${p}s`,g=i===null?"":`, ${i.toFixed(1)} positions away on average`;return`Each ${f} reads about ${u} ${b}${g}.`}var Al=100;function En({doc:e}){return e.attention.reduce((t,n)=>t+n.layers*n.heads,0)<=Al}function An({store:e},t,n,o){let r=`${ve[t.name]}: choose a head. Arrow keys move.`,s=new ce(r,{"data-group":t.name}),i=So(t,300,!0),a=u=>{o.textContent=u?Cl(t,u.layer,u.head):""},l=u=>{let h=e.state.group===t.name?e.state.query:null;e.set({group:t.name,...u,meanOfHeads:!1,query:h,locked:null,hover:null})};s.element.addEventListener("pointermove",u=>{let{x:h,y:p}=s.locate(u);a(Ao(t,i,h,p))}),s.element.addEventListener("pointerleave",()=>a(null)),s.element.addEventListener("click",u=>{let{x:h,y:p}=s.locate(u),f=Ao(t,i,h,p);f&&(l(f),matchMedia("(max-width: 760px)").matches&&s.element.closest("section")?.querySelector(".detail")?.scrollIntoView())}),s.element.addEventListener("keydown",u=>{let[h,p]={ArrowUp:[-1,0],ArrowDown:[1,0],ArrowLeft:[0,-1],ArrowRight:[0,1]}[u.key]??[];if(h===void 0||p===void 0)return;u.preventDefault();let f=e.state.group===t.name,b=f?e.state:{layer:t.default_head[0],head:t.default_head[1]},g=(x,L)=>Math.max(0,Math.min(L-1,x)),w={layer:g(b.layer+(f?h:0),t.layers),head:g(b.head+(f?p:0),t.heads)};a(w),l(w)});let c=(u,h,p=!1)=>{let f=e.state;i=So(t,Math.max(200,u),h!==null);let b=f.group===t.name?{layer:f.layer,head:p?null:f.head}:null;s.describe(i.left,i.top,i.pitch),h!==void 0&&s.draw(i.width+4,i.height,(g,w)=>qs(g,t,i,w,h,f.statistic,b))},d=m("h2",{},ve[t.name],m("span",{class:"small"},` ${n}`));return{element:m("div",{class:"group"},d,m("div",{class:"scroller"},s.element)),draw:c}}function Cl(e,t,n){let o=Object.keys(ct).flatMap(s=>{let i=e.statistics[s]?.[t]?.[n];return i==null?[]:[ct[s].says(i.toFixed(2))]}),r=e.sampled_rows?` (sampled: ${e.sampled_rows} rows)`:"";return`Layer ${t+1}, head ${n+1}: ${o.join(", ")}${r}.`}var Vt=13,Le=17,Pe=84,Cn=Pe+Vt*Le+4;function Vs(e,t,n,o){let r=new be(e,Cn,Cn,o.font),s=(d,u)=>Math.max(0,Math.min(u-Vt,Math.round(d)-(Vt>>1))),i=s(n.row,t.rows.length),a=s(n.column??0,t.columns.length),[l,c]=[Math.min(Vt,t.rows.length),Math.min(Vt,t.columns.length)];for(let d=0;d<l;d++){let u=Pe+d*Le;for(let f=0;f<c;f++){let b=t.codes[(i+d)*t.columns.length+a+f];b>0&&r.rect(Pe+f*Le,u,Le,Le,{fill:o.ramp[b]})}let h=i+d===n.row?o.accent:o.muted,p=me(t.rows[i+d].label,12,o.font,Pe-8);r.text(Pe-5,u+Le/2,p,{fill:h,size:12,anchor:"end"})}for(let d=0;d<c;d++){let u=a+d===n.column?o.accent:o.muted,h=me(t.columns[a+d].label,12,o.font,Pe-8);r.text(Pe+(d+.5)*Le,Pe-5,h,{fill:u,size:12,angle:-90})}r.rect(Pe-.5,Pe-.5,c*Le+1,l*Le+1,{stroke:o.rule}),n.column!==null&&r.rect(Pe+(n.column-a)*Le,Pe+(n.row-i)*Le,Le,Le,{stroke:o.accent,width:2})}var Kt=10,Rn=60;function Qs(e,t,n){let o=(h,p)=>h<=Rn?[0,h]:[Math.max(0,Math.min(h-Rn,Math.round(p)-Rn/2)),Rn],r=n?.row??0,s=n?.column??r*e.columns.length/Math.max(1,e.rows.length),i=o(e.rows.length,r),a=o(e.columns.length,s),l=Math.min(t,640),c=Math.min(130,l*.3),d=t<600?22:24,u=Kt*2+Math.max(i[1],a[1])*d;return{rows:i,columns:a,pitch:d,left:c,right:l-c-44,width:l,height:u}}function Co(e,t,n,o,r){let{rows:s,columns:i}=n;for(let l=s[0];l<s[0]+s[1];l++)if(!(r&&l!==r.row))for(let c=i[0];c<i[0]+i[1];c++){let d=t.value(l,c);if(d<(r?.002:.04))continue;let u=Lt([n.left,Ks(n,l)],[n.right,Xs(n,c)]);e.path(u,{stroke:r?o.accent:o.hue,width:.5+3.5*d,opacity:Math.min(1,.08+d)})}for(let l=s[0];l<s[0]+s[1];l++){let c=me(t.rows[l].label,13,o.font,n.left-12),d=r?l===r.row?o.accent:o.muted:o.ink;e.text(n.left-8,Ks(n,l),c,{fill:d,anchor:"end"})}let a=new Map(r?We(t,r.row,5).map(l=>[l.column,l.weight]):[]);for(let l=i[0];l<i[0]+i[1];l++){let c=me(t.columns[l].label,13,o.font,n.left-12),d=a.get(l),u=d!==void 0&&d>=.01,h=r&&!u?o.muted:o.ink,p=Xs(n,l);e.text(n.right+8,p,c,{fill:h}),u&&e.text(n.width-4,p,ie(d),{fill:o.accent,size:12,anchor:"end"})}}function Ys(e,t,n){let o=Math.floor((n-Kt)/t.pitch)+t.rows[0];return o>=0&&o<e.rows.length&&n>=Kt?{row:o,column:null}:null}function Ks(e,t){return Kt+(t-e.rows[0]+.5)*e.pitch}function Xs(e,t){return Kt+(t-e.columns[0]+.5)*e.pitch}function Rl(e){return Float32Array.from(e,t=>{let n=(t-127)/127;return Math.sign(n)*(256**Math.abs(n)-1)/255})}var Ro=class{constructor(t,n,o){this.samples=t;this.rate=n;this.moved=o}samples;rate;moved;position=null;audio=null;get seconds(){return this.samples.length/this.rate}play(){this.stop();let t=new AudioContext,n=t.createBuffer(1,this.samples.length,this.rate),o=this.samples.reduce((i,a)=>Math.max(i,Math.abs(a)),.001);n.getChannelData(0).set(this.samples.map(i=>.8*i/o));let r=t.createBufferSource();r.buffer=n,r.connect(t.destination),r.onended=()=>this.audio===t&&this.stop(),r.start(),this.audio=t;let s=()=>{this.audio===t&&(this.position=Math.min(t.currentTime,this.seconds),this.moved(),requestAnimationFrame(s))};s()}stop(){this.audio&&(this.audio.close(),this.audio=this.position=null,this.moved())}};function Zs(e,t,n){let{audio:o,rate:r}=e.picture??{};if(!o||!r)return null;let s=null,i=m("button",{type:"button",class:"play"},"▶ Play"),a=()=>{let l=s!==null&&s.position!==null;if(i.textContent=l?"■ Stop":"▶ Play",l&&!i.isConnected)return s.stop();n()};return i.addEventListener("click",()=>{let l=t.read(o);l&&(s??=new Ro(Rl(l.codes),r,a),s.position===null?s.play():s.stop())}),t.read(o),{button:i,position:()=>s?.position??null}}var Po=32,Js=.75,ei=96;function Pn(e,t,n,o=640){let[r,s]=t;if(e.kind==="spectrogram"){let p=Math.max(100,Math.min(220,3*r)),f=Math.max(.6,Math.min(1.3,(o-58)/(p+ei))),b=ei*f,g={x:46,y:8,width:Math.min(n-54,1500),height:p*f};return{picture:g,weights:{...g,y:g.y+g.height+34,height:b},cell:{width:e.cell[1]*g.width/s,height:g.height},width:g.x+g.width+8,height:g.y+g.height+34+b+8}}let[i,a]=[22,38],l=n>=560,c=l?(n-Po)/2-i:n-i-4,d=Math.min(c/s,(o-a-6)/r),u={x:i,y:a,width:s*d,height:r*d},h=l?{...u,x:i+u.width+Po+i}:{...u,y:a+u.height+Po+a};return{picture:u,weights:h,cell:{width:e.cell[1]*d,height:e.cell[0]*d},width:h.x+u.width+4,height:h.y+u.height+4}}function Dn(e,[t,n],o){let r=o/Math.max(n,t),s={x:0,y:0,width:n*r,height:t*r},i={width:e.cell[1]*r,height:e.cell[0]*r};return{picture:s,weights:s,cell:i,width:s.width,height:s.height}}function Do(e,t,n,o,r,s,i){Xt(e,t,n,o,r,s,i),t.kind==="image"?Dl(e,t,o,r,s,i):Fl(e,t,o,r,s,i)}function Xt(e,t,n,o,r,s,i){let{x:a,y:l,width:c,height:d}=s.picture;e.pixels(a,l,c,d,Pl(t,n,i));let u=t.kind==="image",h=o.some(p=>p>0);o.forEach((p,f)=>{let b=Math.sqrt(p/r),g=u?Js*b:h?Js*(1-b):0,w=St(t,s,s.picture,f),x=u?i.tint:i.page;g>.01&&e.rect(w.x,w.y,w.width,w.height,{fill:x,opacity:g})}),oi(e,s.picture,i)}function Fo(e,t,n,o,r,s){let i=(a,l,c,d)=>{let u=St(t,n,a,l);e.rect(u.x,u.y,u.width,u.height,{stroke:c,width:d})};for(let a of[n.picture,n.weights])r!==null&&(i(a,r,o.page,5),i(a,r,o.accent,2.5)),s!==null&&(i(a,s,o.page,3),i(a,s,o.ink,1))}function ti(e,t,n,o,r){let{x:s,width:i}=n.picture,a=s+Math.min(i,r/(t.seconds??1)*n.cell.width),[l,c]=[n.picture.y,n.weights.y+n.weights.height];e.path(`M${a} ${l}V${c}`,{stroke:o.page,width:5}),e.path(`M${a} ${l}V${c}`,{stroke:o.ink,width:2})}function ni(e,t,n,o){for(let r of[t.picture,t.weights]){if(n<r.x||o<r.y||n>=r.x+r.width||o>=r.y+r.height)continue;let s=Math.min(e.grid[1]-1,Math.floor((n-r.x)/t.cell.width));return(e.grid[0]===1?0:Math.min(e.grid[0]-1,Math.floor((o-r.y)/t.cell.height)))*e.grid[1]+s}return null}function St(e,t,n,o){let r=o%e.grid[1],s=Math.floor(o/e.grid[1]),i=n.x+r*t.cell.width,a=e.grid[0]===1?n.height:t.cell.height;return{x:i,y:n.y+s*a,width:Math.min(t.cell.width,n.x+n.width-i),height:a}}function Pl(e,{codes:t,shape:n},o){let[r,s,i]=n,a=new Uint32Array(s*r),l=Uint32Array.from({length:256},(c,d)=>e.kind==="image"?4278190080|d*65793:Qe(o.page,o.ink,d/255));for(let c=0;c<a.length;c++)a[c]=i<3?l[t[c*i]]:4278190080|t[c*i+2]<<16|t[c*i+1]<<8|t[c*i];return{width:s,height:r,data:a}}function Dl(e,t,n,o,r,s){n.forEach((c,d)=>{let u=St(t,r,r.weights,d),h=s.ramp[Math.round(255*Math.sqrt(c/o))];if(e.rect(u.x,u.y,u.width,u.height,{fill:h}),u.width<30||u.height<14)return;let[p,f]=[u.x+u.width/2,u.y+u.height/2],b=c<.001?"":ie(c).slice(1);e.text(p,f,b,{fill:on(h),size:11,anchor:"middle"})}),oi(e,r.weights,s);let i=[[r.picture,"What the model read"],[r.weights,"Weight of each patch"]],{width:a,height:l}=r.cell;for(let[c,d]of i){e.text(c.x,c.y-28,d,{fill:s.ink,size:13,weight:600});let u={fill:s.muted,size:11},h=Math.ceil(18/Math.min(a,l));for(let p=0;p<t.grid[1];p+=h)e.text(c.x+(p+.5)*a,c.y-9,String(p),{...u,anchor:"middle"});for(let p=0;p<t.grid[0];p+=h)e.text(c.x-6,c.y+(p+.5)*l,String(p),{...u,anchor:"end"})}}function Fl(e,t,n,o,r,s){let[i,a]=[r.picture,r.weights],l={fill:s.muted,size:11,anchor:"end"},c=(t.rate??0)/2e3;c&&e.text(i.x-6,i.y+6,`${c<10?Number(c.toFixed(1)):Math.round(c)} kHz`,l),e.text(i.x-6,i.y+i.height/2,"mel",l),e.text(i.x-6,i.y+i.height-6,"0",l);let d=i.width/r.cell.width*(t.seconds??1),u=Hl(d,i.width/60);for(let p=0;p*u<=d*1.0001;p++){let f=i.x+p*u*i.width/d;e.path(`M${f} ${i.y+i.height}v4`,{stroke:s.muted});let b=f+16>i.x+i.width?"end":p?"middle":"start",g=`${Number((p*u).toFixed(3))} s`;e.text(f,i.y+i.height+13,g,{...l,anchor:b})}let h=s.tint;n.forEach((p,f)=>{let b=St(t,r,a,f),g=p/o*a.height,w=b.width>4?1:0;e.rect(b.x,b.y+a.height-g,b.width-w,g,{fill:h})}),e.path(`M${a.x} ${a.y+a.height+.5}h${a.width}`,{stroke:s.muted}),e.text(a.x-6,a.y+5,ie(o),l),e.text(a.x-6,a.y+a.height/2,"weight",l),e.text(a.x-6,a.y+a.height-4,"0",l)}function Hl(e,t){let n=10**Math.floor(Math.log10(e/Math.max(1,t)));return n*([1,2,5].find(o=>o*n*t>=e)??10)}function oi(e,{x:t,y:n,width:o,height:r},s){e.rect(t-.5,n-.5,o+1,r+1,{stroke:s.rule})}var _l=72,ri=e=>e.attention.filter(t=>t.columns==="source"),Fn=e=>!!e.picture&&ri(e).length>0,si=e=>({name:e,title:"Look",applies:t=>t.picture?.kind===e&&Fn(t),mount:Ol}),ii=si("image"),ai=si("spectrogram");function Ol(e){let{doc:t,store:n,blobs:o}=e,r=t.picture,s=r.kind==="image",[i,a]=s?["patch","patches"]:["time step","time steps"],l=r.grid[0]*r.grid[1],c=ri(t),d=lt(e,64),u=En(e),h=m("p",{class:"small",role:"status"}),p=s?"word":"token",f={source:`${i} attends to ${a}`,target:`generated ${p} attends to ${a}`},b=c.map(H=>An(e,H,f[H.rows],h)),g=m("div",{class:"overview"},...b.map(H=>H.element),h),w=m("h2"),x=m("p",{class:"fact"}),L=m("div",{class:"controls"}),v=m("div",{class:"chips",role:"group","aria-label":"What attends"}),A=new ce(`Attention over the ${r.kind}. Arrow keys move what attends, Escape returns.`),M=m("canvas",{role:"img","aria-label":"Color key of the weights, on a square-root scale"}),T=m("div",{class:"key"},M,m("span",{class:"small"},"Weight, square-root scale.")),k=m("p",{class:"readout",role:"status","aria-live":"polite"}),$=m("p",{class:"small"}),S=m("div",{class:"detail"},w,x,L,m("div",{class:"scroller"},v),k,m("div",{class:"scroller"},A.element),T,$),E=m("section",{class:"heads","aria-label":s?"Image":"Spectrogram"},g,S),I=Zs(t,o,()=>oe(n.state,R())),F=null,D=null,y=c.map(H=>fe(qe(t,H).rows,s&&H.rows==="target",!0)),C=H=>y[c.indexOf(H)],R=()=>c.find(H=>H.name===n.state.group)??c[0],B=()=>D.subarray(r.first,r.first+l),P=()=>Math.max(1e-9,...B()),_=H=>{let{query:q}=n.state;return q!==null&&H===R()?q:(H.rows==="target"?!s:r.first>0)?0:"mean"},N=()=>{let H=_(R());return R().rows==="target"||H==="mean"||H<r.first?null:H-r.first},K=H=>{let{x:q,y:X}=A.locate(H);return F&&ni(r,F,q,X)};A.element.addEventListener("pointermove",H=>{let q=K(H);q!==(n.state.hover?.column??null)&&n.set({hover:q===null?null:{row:0,column:q}})}),A.element.addEventListener("pointerleave",()=>n.set({hover:null})),A.element.addEventListener("click",H=>{let q=K(H);q===null||R().rows==="target"||n.set({query:q===N()?null:r.first+q})}),A.element.addEventListener("keydown",H=>{if(H.key==="Escape")return n.set({query:null});let q=R().rows==="target",X=q?1:r.grid[1],Z={ArrowLeft:-1,ArrowRight:1,ArrowUp:-X,ArrowDown:X}[H.key];if(Z===void 0)return;H.preventDefault();let se=_(R()),te=q?0:r.first,ee=C(R()).findIndex(ye=>ye.members[0]===se),le=C(R())[ee<te?te:ee+Z]?.members[0];le!==void 0&&le>=te&&n.set({query:le,hover:null})});function G(H,q,X,Z){let se=d.read(H,q,X);if(!se)return se;let te=H.column_count,ee=new Float32Array(te),ye=C(H).filter($e=>Z==="mean"||$e.members.includes(Z)).flatMap($e=>$e.members);for(let $e of ye)for(let Oe=0;Oe<te;Oe++)ee[Oe]+=Ie[se.codes[$e*te+Oe]]/ye.length;return ee}function J(H,q,X){let se=(q.meanOfHeads?Array.from({length:H.heads},(ee,le)=>le):[q.head]).map(ee=>G(H,q.layer,ee,X)),te=se.find(ee=>!ee);return se.some(ee=>!ee)?te:Float32Array.from({length:H.column_count},(ee,le)=>se.reduce((ye,$e)=>ye+$e[le]/se.length,0))}function O(H){if(!u)return null;if(Object.keys(H.maps).length<H.layers*H.heads)return o.read(H.thumbnails);let q=new Uint8Array(H.layers*H.heads*l);for(let X=0;X<H.layers*H.heads;X++){let Z=G(H,Math.floor(X/H.heads),X%H.heads,_(H));if(!Z)return;let se=Z.subarray(r.first,r.first+l),te=Math.max(1e-9,...se);se.forEach((ee,le)=>q[X*l+le]=ft(ee/te))}return{shape:[H.layers,H.heads,...r.grid],codes:q,scale:1}}function W(H){let q=n.state,X=R();if(q.group!==X.name)return n.set({group:X.name,layer:X.default_head[0],head:X.default_head[1],query:null});(H.size===0||[...H].some(Z=>Z!=="hover"))&&z(q,X),oe(q,X)}function z(H,q){let X=ae(),Z=o.read(r.pixels),se=J(q,H,_(q));D=se??null,b.forEach(($e,Oe)=>$e.draw(g.clientWidth,O(c[Oe]),H.meanOfHeads));let te=H.meanOfHeads?`layer ${H.layer+1} of ${q.layers}, mean of ${q.heads} heads`:an(q,H.layer,H.head);w.textContent=`${sn(t,q)} (${te})`,j(L,...ht(q)),j(v,...pe(q)),x.textContent=D?ne():se===null?"This file has no complete map of this head.":"";let ee=d.problem(q,H.layer,H.head);if($.textContent=[ee,D&&(s?`Full color is the largest weight here, ${ie(P())}; in Heads it is 1.`:`Faded where the weight is small; clear at the largest, ${ie(P())}.`),"Attention shows what a head read, not why the model decided."].filter(Boolean).join(" "),T.hidden=!s||!D,!Z)return;F=Pn(r,Z.shape,Math.max(260,S.clientWidth-4),Xe(A.element));let{x:le,y:ye}=F.picture;A.describe(le,ye,F.cell.width),A.draw(F.width,F.height,$e=>Do($e,r,Z,D?B():new Float32Array(l),D?P():1,F,X)),D&&un(new be(M,256,30,X.font),X,256,P())}function oe(H,q){let X=H.hover?.column??null;if(F&&A.drawOverlay(F.width,F.height,(Z,se)=>{let te=X!==null&&X<l?X:null;Fo(Z,r,F,se,N(),te);let ee=I?.position()??null;ee!==null&&ti(Z,r,F,se,ee)}),!D||!F){k.textContent=x.textContent||"Reading the map …";return}k.textContent=ue(q,X)}let re=H=>de(t.sequences.source?.[r.first+H]);function U(H){let q=_(H);if(q==="mean")return H.rows==="target"?`All generated ${p}s (mean)`:`All ${a} (mean)`;let X=qe(t,H).rows[q],Z=C(H).find(({members:te})=>te.includes(q)),se=Z&&Z.members.length>1?Z.label:de(X);return H.rows==="target"?`Generating ${V(se)}, the decoder`:X?.role==="special"?`The ${se}`:se[0].toUpperCase()+se.slice(1)}function ne(){let H=[...B()].sort((te,ee)=>ee-te),q=H.reduce((te,ee)=>te+ee,0),[X,Z]=[0,0];for(;X<l&&Z<q/2;)Z+=H[X++];return`${X} of ${l} ${l===1?i:a} ${X===1?"holds":"hold"} half of the weight on the ${r.kind}.`}function ue(H,q){let X=U(H),Z=_(H)==="mean"?"attend":"attends";if(q!==null&&q<l){let le=H.rows==="target"?"":` Click to see what ${re(q)} attends to.`;return`${X} ${Z} to ${re(q)}: ${ie(B()[q])}.${le}`}let se=Array.from(B(),(le,ye)=>({weight:le,cell:ye})).sort((le,ye)=>ye.weight-le.weight).slice(0,3).map(({weight:le,cell:ye})=>`${re(ye)} (${ie(le)})`),te=r.first>0&&H.columns==="source"?` The class token holds ${ie(D[0])}.`:"",ee=` Equal weights would be ${ie(1/H.column_count)}.`;return`${X} ${Z} most to ${se.join(", ")}.${te}${ee}`}function pe(H){let q=_(H),X=H.rows==="target",Z=(ee,le)=>m("button",{type:"button","aria-pressed":String(ee===q),onclick:()=>n.set({query:ee})},s&&X&&De(H,ee),le),se=Z("mean",X?`All ${p}s (mean)`:`All ${a} (mean)`),te=C(H).flatMap(({label:ee,members:[le]})=>X||le<r.first||le===q?[Z(le,ee)]:[]);return[se,...te]}function De(H,q){let X=o.read(r.pixels),Z=J(H,n.state,q)?.subarray(r.first,r.first+l);if(!X||!Z)return null;let se=ae(),te=m("canvas",{"aria-hidden":"true"}),ee=Dn(r,X.shape,_l),le=new be(te,ee.width,ee.height,se.font);return Xt(le,r,X,Z,Math.max(1e-9,...Z),ee,se),te}function ht(H){let{state:q}=n,X=c.map(Z=>[Z.name,ve[Z.name]]);return[I?.button??null,X.length>1?Te("Attention",X,H.name,Z=>{let[se,te]=c.find(ee=>ee.name===Z).default_head;n.set({group:Z,layer:se,head:te,query:null,hover:null,locked:null})}):null,Me("Mean of the heads",q.meanOfHeads,Z=>n.set({meanOfHeads:Z})),he(()=>`${r.kind}.${H.name}.${q.layer}.${q.meanOfHeads?"mean":q.head}`,()=>F,(Z,se)=>{let te=o.read(r.pixels);!te||!D||!F||(Do(Z,r,te,B(),P(),F,se),Fo(Z,r,F,se,N(),null))})]}return{element:E,update:W}}var Il=80,Bl={"encoder.self":["the token that attends","what it attends to"],"decoder.self":["the token that is read","what it attends to"],"decoder.cross":["the token being generated","the source"]},ci={name:"heads",title:"Look",applies:e=>e.attention.length>0&&!Fn(e),mount:mi},ui={name:"heads",title:"Heads",level:2,applies:e=>e.attention.length>0&&Fn(e),mount:mi};function mi(e){let{doc:t,store:n,blobs:o,live:r}=e,s=En(e),i=lt(e),a=new ke(O=>{let[W,z,oe,re]=O.split("|");return r.row(W,Number(z),Number(oe),Number(re))},()=>n.notify(["hover"]),64),l,c=m("div"),d=m("p",{class:"small",role:"status"}),u=t.attention.map(O=>An(e,O,Ul(O),d)),h=m("div",{class:"overview"},c,...u.map(O=>O.element),d),p=m("h2"),f=m("p",{class:"fact"}),b=m("div",{class:"controls"}),g=new ce("Attention of the chosen head. Arrow keys move, Enter pins, Escape releases."),w=m("div",{class:"scroller"},g.element),x=m("canvas",{class:"lens","aria-hidden":"true"}),L=m("div",{class:"stage-row"},w,x),v=m("canvas",{role:"img"}),A=m("span",{class:"small"}),M=m("div",{class:"key"},v,A),T=m("p",{class:"readout",role:"status","aria-live":"polite"}),k=m("p",{class:"small"}),$=m("div",{class:"detail"},p,f,b,T,L,M,k),S=m("section",{class:"heads","aria-label":"Heads"},h,$),E=null,I=null,F=null,D=0,y=()=>n.state.locked??n.state.hover,C=()=>({stretched:n.state.stretched,numbers:n.state.numbers}),R=O=>{let{x:W,y:z}=g.locate(O);return E?n.state.drawing==="lines"?F&&Ys(E,F,z):I&&Ue(E,I,W,z):null};g.element.addEventListener("pointermove",O=>{let[W,z]=[R(O),n.state.hover];(W?.row!==z?.row||W?.column!==z?.column)&&n.set({hover:W})}),g.element.addEventListener("pointerleave",()=>n.set({hover:null})),g.element.addEventListener("click",O=>{let[W,z]=[R(O),n.state.locked],oe=W&&z&&W.row===z.row&&W.column===z.column;n.set({locked:oe?null:W})}),g.element.addEventListener("keydown",O=>{if(!E||!E.rows.length)return;let W=jl(y(),O.key,E,n.state.drawing==="lines");W!==void 0&&(O.preventDefault(),n.set({locked:W,hover:null}))});function B(O,W){let z=i.read(O,W.layer,W.head);if(z===void 0)return null;if(z)return{codes:z.codes,columns:z.shape[1],isThumbnail:!1};let oe=o.read(O.thumbnails);if(!oe)return null;let[re,U]=oe.shape.slice(2),ne=(W.layer*O.heads+W.head)*re*U;return{codes:oe.codes.subarray(ne,ne+re*U),columns:U,isThumbnail:!0}}function P(O,W){let z=B(W,O);if(!z)return E=null,!1;if(z.isThumbnail){let re=U=>Array.from({length:U},(ne,ue)=>({label:"",special:!1,members:[ue]}));return E=je(z.codes,z.columns,re(z.codes.length/z.columns),re(z.columns)),!0}let oe=qe(t,W);return E=je(z.codes,z.columns,fe(oe.rows,O.words,O.specials),fe(oe.columns,O.words,O.specials)),!1}function _(O){let W=n.state,z=ln(t,W.group);if(!(O.size>0&&[...O].every(re=>re==="hover"||re==="locked"))){D=Math.max(260,$.clientWidth);let re=P(W,z);u.forEach((pe,De)=>pe.draw(h.clientWidth,s?o.read(t.attention[De].thumbnails):null)),s||j(c,Nl(e)),p.textContent=`${sn(t,z)} (${an(z,W.layer,W.head)})`,f.textContent=js(t,z,W.layer,W.head),j(b,...Wl(e,J));let[U,ne]=Bl[Hn(z)||z.name!=="decoder.cross"?z.name:"encoder.self"];A.textContent=`${li(W)}. Rows: ${U}. Columns: ${ne}.`;let ue=i.problem(z,W.layer,W.head);j(k,...ql(t,z,W,re,ue)),N(W,re)}K(W,z)}function N(O,W){let z=ae();if(M.hidden=O.drawing==="lines",un(new be(v,256,30,z.font),z,256,O.stretched?null:1),v.setAttribute("aria-label",`Color key: ${li(O)}`),!E)return;let oe=Math.max(E.rows.length,E.columns.length)>96,re=oe&&O.drawing==="heatmap"&&D>760?Cn:0;x.hidden=re===0;let U=D-(re?re+16:0),ne=Xe(L,44*E.rows.length);I=W?{...He(E,U,z,ne),labeled:!1,left:12,top:12}:He(E,Math.min(U,oe?720:U),z,ne),O.drawing==="heatmap"&&(g.describe(I.left,I.top,I.cell),g.draw(I.width,I.height,ue=>Ae(ue,E,I,z,{...C(),pixelRatio:(window.devicePixelRatio||1)*Ne()})))}function K(O,W){let z=ae(),oe=E&&Fe(y(),E);oe&&G(O,W,oe.row),E&&O.drawing==="lines"?(F=Qs(E,D-6,O.locked),g.draw(F.width,F.height,re=>Co(re,E,F,z,oe)),g.drawOverlay(F.width,F.height,()=>{})):E&&I&&(g.drawOverlay(I.width,I.height,re=>{oe&&Ze(re,E,I,z,oe,O.locked!==null,C())}),x.hidden||Vs(x,E,oe??{row:0,column:0},z)),T.textContent=oe?Gl(W,E,oe):E?zl(E):"Reading the map …"}function G(O,W,z){if(clearTimeout(l),!r.available||!E||E.isExact(z))return;let oe=E.rows[z].members.map(re=>`${W.name}|${O.layer}|${O.head}|${re}`);if(oe.every(re=>a.has(re))){let re=oe.map(U=>a.read(U));re.every(U=>U!==void 0)&&E.refine(z,re)}else l=setTimeout(()=>oe.forEach(re=>a.read(re)),Il)}function J(){return he(()=>`${n.state.group}.${n.state.layer}.${n.state.head}`,()=>n.state.drawing==="lines"?F:I,(O,W)=>{E&&(n.state.drawing==="lines"?Co(O,E,F,W,y()):Ae(O,E,I,W,C()))})}return{element:S,update:_}}function li({stretched:e}){return e?"Share of the row's largest weight, square-root scale":"Weight from 0 to 1, square-root scale"}function Nl({doc:e,store:t}){let n=Object.keys(ct).filter(i=>e.attention.some(a=>a.statistics[i]?.flat().some(l=>l!==null))).map(i=>[i,ct[i].title]),{statistic:o}=t.state,r=Math.max(...e.attention.map(i=>Eo(i,o))),s=`Page color: 0. Full color: ${r.toFixed(r===1?0:1)} ${ct[o].unit}`;return m("div",{},Se("Color",n,o,i=>t.set({statistic:i})),m("p",{class:"small"},`${s.trim()}.`))}function Wl({doc:e,store:t},n){let o=t.state,r={hover:null,locked:null},s=Object.values(e.sequences),i=s.some(l=>l.some((c,d)=>ze(l,d))),a=s.flat().some(l=>l.role==="special");return[Te("Drawing",[["heatmap","Heatmap"],["lines","Lines"]],o.drawing,l=>t.set({drawing:l})),i?Me("Words",o.words,l=>t.set({words:l,...r})):null,a?Me("Special tokens",o.specials,l=>t.set({specials:l,...r})):null,Me("Numbers",o.numbers,l=>t.set({numbers:l})),Me("Stretch rows",o.stretched,l=>t.set({stretched:l})),n()]}function Hn(e){return e.name==="decoder.cross"&&e.row_start>0}function Ul(e){return e.name==="decoder.cross"&&!Hn(e)?"query attends to keys":fr[e.name]}function Gl(e,t,n){let o=(p,f)=>p.label?V(p.label):`cell ${f}`,r=o(t.rows[n.row],n.row),s=t.isExact(n.row)?p=>p.toFixed(4):ie,i=We(t,n.row,4).filter(p=>p.weight>=.005).map(p=>`${o(t.columns[p.column],p.column)} ${s(p.weight)}`),a=Hn(e)?`Generating ${r}`:r,l=t.hidden(n.row),c=l>=.01?` Hidden special tokens hold ${s(l)}.`:"",d=i.length?`attends most to ${i.join(", ")}.`:"attends to nothing that is shown.",u=Hn(e)?", the decoder ":" ";if(n.column===null)return`${a}${u}${d}${c}`;let h=s(t.value(n.row,n.column));return`${a} → ${o(t.columns[n.column],n.column)}: ${h}. The row ${d}${c}`}function zl(e){return e.rows.length?Ee("a row","to read its weights"):"All tokens here are special tokens, which are hidden."}function ql(e,t,n,o,r){let s=t.errors[n.layer]?.[n.head],i=[];if(r&&i.push(r),o&&i.push("This file has only the thumbnail of this head: each cell is the maximum of the weights that it covers."),s!=null){let a=s===0?"Exact.":`Exact to ${s.toExponential(0).replace("e-","e−")}.`;i.push(m("span",{title:"Largest difference between weights × values and what the model computed: max |A·V − output|"},a))}return t.sampled_rows&&i.push(`Statistics and thumbnails are sampled: ${t.sampled_rows} query rows.`),n.words&&i.push("Words: columns are sums over subwords, rows are means."),hr(e)&&i.push(pr),i.flatMap(a=>[a," "])}function jl(e,t,n,o){if(t==="Escape")return null;let s={ArrowUp:[-1,0],ArrowDown:[1,0],ArrowLeft:[0,-1],ArrowRight:[0,1],PageUp:[-10,0],PageDown:[10,0],Enter:[0,0]}[t];if(!s)return;if(!e)return{row:0,column:o?null:0};let i=(a,l)=>Math.max(0,Math.min(l-1,a));return{row:i(e.row+s[0],n.rows.length),column:o?null:i((e.column??0)+s[1],n.columns.length)}}var _n=40,xe=90,pi={name:"masks",title:"Masks",level:2,applies:e=>e.attention.length>0&&e.masks.length>0&&(!e.picture||e.masks.some(t=>t.terms.length>0)),mount:Vl},hi={causal:{label:()=>"causal: no later token",reason:"it comes later"},window:{label:e=>`window: fewer than ${e.width} tokens away`,reason:"it is outside the window"},padding:{label:()=>"padding: only valid tokens",reason:"it is padding"},documents:{label:()=>"documents: only the same text",reason:"it belongs to another text"}};function fi(e,t,n){return e.kind==="causal"?n<=t:e.kind==="window"?Math.abs(t-n)<(e.width??1/0):e.kind==="padding"?e.valid?.[n]??!0:e.documents?.[t]===e.documents?.[n]}function Vl({doc:e,store:t}){let n=m("p",{class:"fact"}),o=m("div",{class:"controls"}),r=m("p",{class:"readout",role:"status","aria-live":"polite"}),s=new ce("The mask. Arrow keys move."),i=m("div",{class:"card"}),a=m("p",{class:"small"}),l=m("section",{class:"masks","aria-label":"Masks"},m("h2",{},"Who may attend to whom"),n,o,r,m("div",{class:"columns"},m("div",{},m("div",{class:"scroller"},s.element),a),m("div",{},i))),c={cell:20,width:0,height:0,rows:[],columns:[]},d=()=>e.masks.find(f=>f.group===t.state.mask)??e.masks[0],u=()=>t.state.locked??t.state.hover,h=f=>{let{x:b,y:g}=s.locate(f),[w,x]=[Math.floor((g-xe)/c.cell),Math.floor((b-xe)/c.cell)];return w>=0&&x>=0&&w<c.rows.length&&x<c.columns.length?{row:w,column:x}:null};s.element.addEventListener("pointermove",f=>{let[b,g]=[h(f),t.state.hover];(b?.row!==g?.row||b?.column!==g?.column)&&t.set({hover:b})}),s.element.addEventListener("pointerleave",()=>t.set({hover:null})),s.element.addEventListener("click",f=>t.set({locked:t.state.locked?null:h(f)})),s.element.addEventListener("keydown",f=>{if(f.key==="Escape")return t.set({locked:null});let b={ArrowUp:[-1,0],ArrowDown:[1,0],ArrowLeft:[0,-1],ArrowRight:[0,1]}[f.key];if(!b)return;f.preventDefault();let g=u(),w=(L,v)=>Math.max(0,Math.min(v-1,L)),x=g?{row:w(g.row+b[0],c.rows.length),column:w((g.column??0)+b[1],c.columns.length)}:{row:0,column:0};t.set({locked:x,hover:null})});function p(){let{state:f}=t,b=d(),g=ln(e,b.group),w=qe(e,g),x=b.terms.filter(S=>!f.hiddenTerms.includes(S.kind)),[L,v]=[fe(w.rows.slice(0,_n),!1,!0),fe(w.columns.slice(0,_n),!1,!0)],A=(Math.max(260,l.clientWidth)-xe-20)/Math.max(1,v.length),M=Math.max(12,Math.min(28,Math.floor(A)));c={cell:M,rows:L,columns:v,width:xe+v.length*M+40,height:xe+L.length*M+4},n.textContent=Kl(b,f);let T=e.masks.map(S=>[S.group,ve[S.group]]);j(o,T.length>1?Te("Attention",T,b.group,S=>t.set({mask:S,hiddenTerms:[],locked:null})):null,...b.terms.map(S=>Me(hi[S.kind].label(S),!f.hiddenTerms.includes(S.kind),E=>t.set({hiddenTerms:E?f.hiddenTerms.filter(I=>I!==S.kind):[...f.hiddenTerms,S.kind]}))),he(()=>`mask.${b.group}`,()=>c,(S,E)=>di(S,c,x,E,null)));let k=Fe(u(),c);s.describe(xe,xe,M),s.draw(c.width,c.height,(S,E)=>di(S,c,x,E,k)),s.drawOverlay(c.width,c.height,()=>{}),r.textContent=k?Xl(L,v,x,k):Ee("a cell","to read whether its row may attend to its column"),i.hidden=b.leak===null,b.leak&&j(i,...Ql(b.leak));let $=Math.max(w.rows.length,w.columns.length)>_n;a.textContent=$?`The first ${_n} tokens are shown.`:""}return{element:l,update:p}}function di(e,t,n,o,r){let{cell:s,rows:i,columns:a}=t;i.forEach((l,c)=>{let d=xe+c*s,u=c===r?.row?o.accent:o.muted;e.text(xe-6,d+s/2,me(l.label,12,o.font,xe-10),{fill:u,size:12,anchor:"end"}),a.forEach((h,p)=>{let f=n.every(g=>fi(g,c,p)),b=xe+p*s;f?e.rect(b+1,d+1,s-2,s-2,{fill:o.hue,radius:2}):e.rect(b+s/2-1.5,d+s/2-1.5,3,3,{fill:o.rule,radius:1.5})})}),a.forEach((l,c)=>{let d=c===r?.column?o.accent:o.muted,u=me(l.label,12,o.font,xe-10),[h,p]=[xe+(c+.5)*s,ge(u,12,o.font)<=s-2];p?e.text(h,xe-10,u,{fill:d,size:12,anchor:"middle"}):e.text(h,xe-6,u,{fill:d,size:12,angle:-53})}),r&&r.column!==null&&e.rect(xe+r.column*s,xe+r.row*s,s,s,{stroke:o.accent,width:2.5})}function Kl(e,t){if(e.terms.length===0)return"No mask: every row attends to every column.";let n=e.terms.filter(o=>t.hiddenTerms.includes(o.kind));return n.length?`What if: no ${n.map(o=>o.kind).join(", no ")} mask (the model does use it).`:e.terms.length===1&&e.terms[0].kind==="causal"?"Causal: a token attends to itself and to earlier tokens only.":`A row attends to a column if all terms allow it: ${e.terms.map(o=>o.kind).join(", ")}.`}function Xl(e,t,n,o){let[r,s]=[o.row,o.column??0],i=n.filter(l=>!fi(l,r,s)),a=[V(e[r].label),V(t[s].label)];return i.length===0?`${a[0]} may attend to ${a[1]}.`:`${a[0]} may not attend to ${a[1]}: ${i.map(l=>hi[l.kind].reason).join(" and ")}.`}function Ql(e){let t=s=>s<.001?s.toExponential(1):s.toFixed(2),n=e.later_change===0?"The test shows nothing: replacing later tokens changed no prediction.":e.change<1e-4?"No future leaks.":"The future leaks!",o=e.prefix===1?"First prediction":`First ${e.prefix} predictions`,r=e.change===0?`${o} unchanged when the rest is replaced`:`${o} ${e.change<1e-4?"unchanged":"changed"} when the rest is replaced (by up to ${t(e.change)})`;return[m("p",{},m("strong",{},`Leak test: ${n}`)),m("p",{},`${r}.`),m("p",{class:"small"},`The model read the same beginning with ${e.replaced} other tokens after it; their own predictions changed by up to ${t(e.later_change)}. Numbers are changes of a log-probability.`)]}var bi=20,ut=46,wi=56,Yl=6,xi={name:"merges",title:"BPE merges",level:2,applies:e=>e.merges!==null,mount:Zl};function Ho(e,t,n){let o=t===0?e.start:e.steps[t-1].words,r=t===0?null:e.steps[t-1].left+e.steps[t-1].right,s=[],i=0;return o.forEach((a,l)=>{let c=wi;for(let d of a){let u=Q(d,24),h={text:u,x:c,y:l*ut+4,width:ge(u,bi,n.font)+20,isNew:d===r};s.push(h),c+=h.width+Yl}i=Math.max(i,c)}),{boxes:s,width:i+4,height:o.length*ut+4}}function gi(e,t,n,o){t.counts.forEach((r,s)=>e.text(wi-12,s*ut+4+(ut-8)/2,`${r} ×`,{fill:o.muted,anchor:"end"}));for(let{text:r,x:s,y:i,width:a,isNew:l}of n.boxes){let c=i+(ut-8)/2;e.rect(s,i,a,ut-8,l?{fill:o.hue,opacity:.18,radius:6}:{radius:6}),e.rect(s,i,a,ut-8,{stroke:l?o.hue:o.rule,width:1.5,radius:6});let d={fill:l?o.hue:o.ink,size:bi,weight:l?600:400};e.text(s+a/2,c,r,{...d,anchor:"middle"})}}function Zl({doc:e,store:t}){let n=e.merges,o=m("p",{class:"fact"}),r=m("div",{class:"chips",role:"group","aria-label":"Merges"}),s=m("p",{class:"readout",role:"status","aria-live":"polite"}),i=new ce("Words as symbols. Right and left arrow keys go one merge on or back."),a=p=>t.set({merge:Math.max(0,Math.min(n.steps.length,p))});i.element.addEventListener("keydown",p=>{let f={ArrowRight:1,ArrowDown:1,ArrowLeft:-1,ArrowUp:-1}[p.key];f&&(p.preventDefault(),a(t.state.merge+f))}),i.element.addEventListener("click",()=>a(t.state.merge+1));let l=m("button",{type:"button",onclick:()=>a(t.state.merge-1)},"Back"),c=m("button",{type:"button",onclick:()=>a(t.state.merge+1)},"Next merge"),d=he(()=>`merge.${t.state.merge}`,()=>Ho(n,t.state.merge,ae()),(p,f)=>gi(p,n,Ho(n,t.state.merge,f),f)),u=m("section",{class:"merges","aria-label":"BPE merges"},m("h2",{},"How a BPE vocabulary is learned"),o,m("div",{class:"controls"},l,c,d),m("div",{class:"scroller"},i.element),s,m("h3",{},"Merges in their order"),r);function h(p){let f=t.state.merge,b=Ho(n,f,ae());o.textContent=Jl(n,f);let g=new Set((f===0?n.start:n.steps[f-1].words).flat()),w=b.boxes.length;s.textContent=`${w} symbols spell the ${n.words.length} words, ${g.size} of them distinct.`,i.draw(b.width,b.height,(x,L)=>gi(x,n,b,L)),l.disabled=f===0,c.disabled=f===n.steps.length,j(r,...n.steps.map(({left:x,right:L},v)=>m("button",{type:"button","aria-pressed":String(v+1===f),onclick:()=>a(v+1)},Q(x+L,24))))}return{element:u,update:h}}function Jl(e,t){if(t===0)return"Before the first merge every character is a symbol; ▁ ends a word.";let{left:n,right:o,count:r}=e.steps[t-1],s=`${V(Q(n,24))} + ${V(Q(o,24))}`,i=r===1?"once":r===2?"twice":`${r} times`;return`Merge ${t} of ${e.steps.length}: ${s} becomes ${V(Q(n+o,24))}, a most frequent pair: ${i}.`}function yi(e,t){let[n,o]=[e.width,e.base],r=new Float64Array(t*n);for(let s=0;s<t;s++)for(let i=0;i<n/2;i++){let a=s/o**(2*i/n),[l,c]=e.interleaved?[2*i,2*i+1]:[i,i+n/2];r[s*n+l]=Math.sin(a),r[s*n+c]=Math.cos(a)}return{rows:t,columns:n,values:r}}function _o(e,t){let n=e.key_dim/2,o=new Float64Array(t*n);for(let r=0;r<t;r++)for(let s=0;s<n;s++)o[r*n+s]=Math.cos(r*e.base**(-s/n));return{rows:t,columns:n,values:o}}function ki(e,t){let n=_o(e,t);return Array.from({length:t},(o,r)=>{let s=0;for(let i=0;i<n.columns;i++)s+=n.values[r*n.columns+i];return[r,s/n.columns]})}function Oo({rows:e,columns:t,values:n}){let o=new Float64Array(e*e);for(let r=0;r<e;r++)for(let s=0;s<e;s++){let i=0;for(let a=0;a<t;a++)i+=n[r*t+a]*n[s*t+a];o[r*e+s]=i}return{rows:e,columns:e,values:o}}function Io(e,t){return Array.from({length:t/2},(n,o)=>[o,2*Math.PI*e**(2*o/t)])}var vi={name:"positions",title:"Positions",level:2,applies:e=>e.positions.some(t=>t.kind!=="none"),mount:tc},On=64,ec={none:"No position encoding.",sinusoidal:"Sinusoidal: every position has a vector of sines and cosines, from short to long wavelengths.",learned:"Learned: every position has a trained vector.",rotary:"Rotary: queries and keys are turned by an angle that grows with the position, so that a weight depends on the distance.",alibi:"ALiBi: each head subtracts slope × distance from its scores.",relative:"Relative: each head adds a trained bias for each distance."};function tc({doc:e,store:t,blobs:n}){let o=m("p",{class:"fact"}),r=m("div",{class:"controls"}),s=m("div",{class:"columns figures"}),i=m("p",{class:"small"}),a=m("section",{class:"positions","aria-label":"Positions"},m("h2",{},"How the model knows the order"),o,r,s,i),l=e.positions.map(u=>[u.stack,u.stack==="encoder"?"Encoder":"Decoder"]);function c(){let u=e.positions.find(g=>g.stack===t.state.stack)??e.positions[0];o.textContent=ec[u.kind],j(r,l.length>1?Te("Stack",l,u.stack,g=>t.set({stack:g})):null);let h=u.max_positions===null?"No length limit.":`At most ${u.max_positions} tokens; this text has ${u.length}.`;i.textContent=`Blue is above zero, purple below. ${u.kind==="none"?"":h}`;let p=a.clientWidth,f=p>1e3?Math.min(440,(p-84)/3):Math.min(440,Math.max(240,p-12)),b=nc(u,f,g=>n.read(g));j(s,...b.map(g=>d(g,f)))}function d(u,h){let p=new ce(u.title,{role:"img",tabindex:null});p.draw(u.width,u.height,b=>u.draw(b,ae())),p.overlay.remove();let f=m("div",{},m("h3",{},u.title),p.element);return f.style.width=`${h}px`,f}return{element:a,update:c}}function nc(e,t,n){if(e.kind==="sinusoidal"){let o=yi(e,On);return[Qt("Vectors: rows are positions, columns dimensions","dimension",o,t,e.length),Qt("PE·PEᵀ: how alike two positions are","position",Oo(o),t,e.length),Yt("Wavelength of each pair of dimensions",["pair of dimensions","tokens (log scale)"],[{label:"",points:Io(e.base,e.width)}],t,!0)]}if(e.kind==="learned"&&e.vectors){let o=n(e.vectors);if(!o)return[];let[r,s]=o.shape,i={rows:r,columns:s,values:Float64Array.from(o.codes,a=>a*o.scale)};return[Qt("Vectors: rows are positions, columns dimensions","dimension",i,t,e.length),Qt("PE·PEᵀ: how alike two positions are","position",Oo(i),t,e.length)]}if(e.kind==="rotary")return[Qt("Cosine of the angle: rows are positions, columns pairs of dimensions","pair of dimensions",_o(e,On),t,e.length),Yt("Mean of cos(angle) by distance: turned vectors grow apart",["distance in tokens","cosine"],[{label:"",points:ki(e,On)}],t),Yt("Wavelength of each pair of dimensions",["pair of dimensions","tokens (log scale)"],[{label:"",points:Io(e.base,e.key_dim)}],t,!0)];if(e.kind==="alibi"&&e.slopes){let o=Array.from({length:On},(s,i)=>i),r=e.slopes.map((s,i)=>({label:`head ${i+1}`,points:o.map(a=>[a,-s*a])}));return[Yt("Bias by distance, one line per head",["distance in tokens","bias"],r,t)]}if(e.kind==="relative"&&e.curves&&e.offsets){let o=n(e.curves);if(!o)return[];let[r,s,i]=o.shape;return Array.from({length:r},(a,l)=>{let c=Array.from({length:s},(u,h)=>({label:`head ${h+1}`,points:e.offsets.map((p,f)=>[p,o.codes[(l*s+h)*i+f]])})),d=r>1?`Bias by offset (column − row), layer ${l+1}`:"Bias by offset (column − row), one line per head";return Yt(d,["offset in tokens","bias"],c,t)})}return[]}function Qt(e,t,n,o,r){let s=Math.max(1,Math.min(14,(o-40)/Math.max(n.columns,n.rows))),i=Math.max(n.columns*s,Math.min(240,o-40)),[a,l]=[32,22];return{title:e,width:a+i+4,height:l+n.rows*s+18,draw(c,d){let u=n.values.reduce((f,b)=>Math.max(f,Math.abs(b)),1e-12),h=new Uint32Array(n.values.length);n.values.forEach((f,b)=>h[b]=Qe(d.page,f<0?d.minus:d.hue,Math.abs(f)/u)),c.pixels(a,l,i,n.rows*s,{width:n.columns,height:n.rows,data:h}),c.rect(a-.5,l-.5,i+1,n.rows*s+1,{stroke:d.rule});let p={fill:d.muted,size:11};c.text(0,9,"position ↓",p),c.text(a+i,9,`${t} →`,{...p,anchor:"end"});for(let f=0;f<n.rows;f+=16)c.text(a-6,l+(f+.5)*s,String(f),{fill:d.muted,size:11,anchor:"end"});if(r<n.rows){let f=l+r*s;c.path(`M${a} ${f}h${i}`,{stroke:d.ink,width:1,dash:"4 3"}),c.text(a,l+n.rows*s+11,`dashed: the last of ${r} tokens`,{fill:d.muted,size:11})}}}}function Yt(e,[t,n],o,r,s=!1){let[i,a,l,c,d]=[52,58,24,40,256],u=v=>s?Math.log10(v):v,h=o.flatMap(v=>v.points.map(([A])=>A)),p=o.flatMap(v=>v.points.map(([,A])=>u(A))),[f,b,g,w]=[Math.min(...h),Math.max(...h),Math.min(...p,s?1/0:0),Math.max(...p)],x=v=>i+(v-f)/(b-f||1)*(r-i-a),L=v=>l+(1-(u(v)-g)/(w-g||1))*(d-l-c);return{title:e,width:r,height:d,draw(v,A){let M={fill:A.muted,size:11};v.text(4,8,n,M),v.text(r-a,d-8,`${t} →`,{...M,anchor:"end"});for(let $=0;$<=4;$++){let S=g+(w-g)*$/4,E=l+(1-$/4)*(d-l-c);v.path(`M${i} ${E}H${r-a}`,{stroke:A.rule});let I=s?Math.round(10**S).toLocaleString("en"):Number(S.toPrecision(2)).toString().replace("-","−");v.text(i-6,E,I,{...M,anchor:"end"});let F=f+(b-f)*$/4;v.text(x(F),d-26,String(Math.round(F)).replace("-","−"),{...M,anchor:"middle"})}let T=-1/0;o.map($=>({curve:$,end:L($.points[$.points.length-1][1])})).sort(($,S)=>$.end-S.end).forEach(({curve:$,end:S},E)=>{let I=$.points.map(([F,D],y)=>`${y?"L":"M"}${x(F).toFixed(1)} ${L(D).toFixed(1)}`).join("");v.path(I,{stroke:A.hue,width:2,opacity:.45+.55*(E+1)/o.length}),!(!$.label||S-T<12)&&(T=S,v.text(r-a+6,S,$.label,M))})}}}var oc=200,$i=5,Mi={name:"predictions",title:"Predictions",applies:e=>e.predictions.length>0,mount:({doc:e})=>{let{told:t,untagged:n}=Re(e),o=i=>{let a=i.slice(0,oc).map(l=>sc(e,e.predictions[l]));return m("div",{class:"cards"},...a)},r=e.predictions.map((i,a)=>a).filter(i=>!t.includes(i));return{element:m("section",{class:"predictions","aria-label":"Predictions"},m("h2",{},"What the model predicted"),m("p",{class:"fact"},rc(e)),o(t),n>0?m("details",{class:"transcript"},m("summary",{},$t(n)),o(r)):null),update:()=>{}}}};function rc(e){let{told:t}=Re(e),n=t.map(i=>e.predictions[i]),o=n.reduce((i,a)=>(a.probabilities[0]??0)>(i.probabilities[0]??0)?a:i);if(!o.labels.length)return"Candidates with their probabilities, best first.";let r=V(Q(o.labels[0].trim()||"␣",24));return`${n.length>1?`The surest of ${n.length} predictions`:"The prediction"}: ${r}, probability ${ie(o.probabilities[0])}.`}function sc(e,t){let n=t.labels.map((s,i)=>{let a=m("span",{class:"bar"});return a.style.width=`max(1px, calc(${t.probabilities[i]} * (100% - 56px)))`,[m("dt",{dir:"auto"},Q(s.trim()||"␣",24)),m("dd",{},a,ie(t.probabilities[i]))]}),o=e.predictions.length===1||n.length<=$i+1?n.length:$i,r=n.slice(o);return m("div",{class:"card"},m("h3",{},ic(e,t.position)),m("dl",{},...n.slice(0,o).flat()),r.length?m("details",{},m("summary",{class:"small"},`${r.length} more`),m("dl",{},...r.flat())):null)}function ic(e,t){if(t===null)return e.picture?`The ${e.picture.kind}`:"The whole text";let n=e.sequences.source?.[t];return`Position ${t}: ${V(de(n))}`}var Zt=256,ac=6,lc=.75,cc=.03,uc=["decoder.cross","decoder.self","encoder.self"],Et=e=>(e.sequences.target??[]).findIndex(t=>t.logprob!==void 0),Li=e=>e.merges===null&&(Et(e)>=0||e.predictions.some(t=>t.labels.length>0));function Bo(e,t){let n=Et(e),o=n>=0,r=mc(e,t,n),s=fe(r.columns,!0,!1),i=o?pc(e,n):fc(e);i.forEach(p=>{let f=r.row(o?p.lead-n:p.prediction);if(!f)return;let b=s.map(({members:w})=>w.reduce((x,L)=>x+f[L],0)),g=b.reduce((w,x)=>w+Math.abs(x),0)||1;p.shares=b.map(w=>r.kind==="attribution"?w/g:w),r.kind==="attention"&&r.columns.forEach((w,x)=>p.special+=w.role==="special"?f[x]:0)});let a=o&&r.group==="decoder.self",l=s.map(({members:p})=>Ti(p.map(f=>r.columns[f]))),c={inputs:s,areWords:l,outputs:i,isWritten:o,looksBack:a,evidence:r.kind},u=!o&&i.length===1?bc(e,c):gc(e,c),h=o?"":$t(Re(e).untagged);return h&&u.length&&(u[u.length-1].text+=` ${h}`),{...c,steps:u}}function mc(e,t,n){let{attribution:o,sequences:r,reads:s}=e;if(n<0&&o&&o.outputs.length>=e.predictions.length){let h=t(o.methods.integrated_gradients),p=o.source_columns+o.target_columns;return{kind:"attribution",columns:[...r.source??[],...r.target??[]].slice(0,p),row:b=>h?.codes.slice(b*p,(b+1)*p)??null}}let i=e.attention.find(({name:h})=>h===(s?.group??uc.find(p=>dc(e,p))));if(!i)return{kind:null,columns:[],row:()=>null};let a=i.column_count,l=(r[i.columns]??[]).slice(0,a),c=(h,p)=>{let f=h.slice(p*a,(p+1)*a);return f instanceof Uint8Array?Float32Array.from(f,b=>Ie[b]):f},d=t(s?s.weights:i.maps[i.default_head.join(".")]??i.thumbnails),u=h=>{if(!d||d.shape.length!==2)return null;if(s)return h<d.shape[0]?c(d.codes,h):null;let p=n>=0?n+h-1:e.predictions[h].position??0;return c(d.codes,p)};return{kind:"attention",group:i.name,columns:l,row:u}}var dc=(e,t)=>e.attention.some(n=>n.name===t),Ti=e=>e.some(({text:t})=>/[\p{L}\p{N}]/u.test(t)),Si=e=>Math.exp(e??-1/0);function pc(e,t){let n=e.sequences.target,o=fe(n.slice(t),!0,!1);return(o.length<3?fe(n.slice(t),!1,!1):o).slice(0,Zt).map(({label:s,members:i})=>{let a=i.map(p=>t+p),l=a.map(p=>({label:de(n[p]),probability:Si(n[p].logprob)})),c=l.reduce((p,f)=>p*f.probability,1),d=a.find(p=>n[p].text.trim()!=="")??a[0],u=Ti(a.map(p=>n[p])),h=hc(e,d);return{label:s,places:a,lead:d,prediction:-1,probability:c,tokens:l,isWord:u,bars:h,shares:[],special:0}})}function hc(e,t){let n=e.sequences.target[t],o=t-(e.next?.first??0),r=(e.next?.tokens[o]??[]).map((s,i)=>({label:de(e.vocabulary[s]),probability:e.next.probabilities[o][i],isChosen:s===n.id}));return r.some(s=>s.isChosen)?r:[...r,{label:de(n),probability:Si(n.logprob),isChosen:!0}]}function fc(e){let{told:t}=Re(e);return t.slice(0,Zt).map(n=>{let{position:o,labels:r,probabilities:s}=e.predictions[n],i=r.map(h=>Q(h.trim()||"␣",24)),a=i.map((h,p)=>({label:h,probability:s[p],isChosen:p===0})).slice(0,8),l=i[0]??"–",c=s[0]??0;return{label:l,places:o===null?[]:[o],lead:-1,prediction:n,probability:c,...{tokens:[],isWord:!0,bars:a,shares:[],special:0}}})}function Ei(e){let t=0;return e.map((n,o)=>({size:Math.abs(n),input:o})).filter(({size:n})=>n>=cc).sort((n,o)=>o.size-n.size).slice(0,ac).filter(({size:n})=>(t+=n)-n<lc).map(({input:n})=>n)}function gc(e,t){return t.outputs.map((n,o)=>{let r=Ei(n.shares);return{output:o,isWritten:!0,inputs:r,text:wc(e,t,n,r)}})}function bc(e,t){let[n]=t.outputs,o=Ei(n.shares);e.picture?.kind==="spectrogram"&&o.sort((a,l)=>a-l);let r=o.map((a,l)=>({output:0,isWritten:!1,inputs:o.slice(0,l+1),text:`${Ai(e,t,n,a)}.`.replace(/^it/,"It")})),i=`It decides: ${n.places.length?mt(e,n.places[0]):"the answer"} is ${V(n.label)} (${Y(n.probability)} sure).`;return[...r,{output:0,isWritten:!0,inputs:o,text:i}]}function wc(e,t,n,[o]){let r=`${V(n.label)} (${Y(n.probability)} sure)`,s=o===void 0?"":Ai(e,t,n,o);if(!t.isWritten)return`It decides: ${mt(e,n.places[0])} is ${r}${s?`; ${s}`:""}.`;let i=n.special>(n.shares[o]??0),a=i?`It reads mostly special tokens (${Y(n.special)})${s?`, then ${At(e,t,o)} (${Y(n.shares[o])}),`:""}`:`It${s.slice(2)}`;return s||i?`${a} and writes ${r}.`:`It writes ${r}.`}function Ai(e,t,n,o){let[r,s]=[At(e,t,o),n.shares[o]],i=Y(Math.abs(s));return t.evidence==="attribution"?`${r} speaks ${s>0?"for":"against"} it (${i} of all effects)`:`it ${t.looksBack?"looks back at":"reads"} ${r} (${i})`}function At(e,{inputs:t,looksBack:n},o){let{label:r}=t[o];return!e.picture||n?V(r):e.picture.kind==="image"?r:`the sound at ${r}`}function mt(e,t){let n=e.sequences.source?.[t];if(n?.role!=="special"){let r=e.sequences.source??[];return V(we(r.filter(({word:s})=>s!==null&&s===n?.word))||"?")}let o=e.predictions.filter(r=>r.position!==null);return o.length>1?`gap ${o.findIndex(r=>r.position===t)+1}`:"the gap"}function Ri(e,t){return[...t.isWritten?[xc(e,t),yc(t),...kc(e,t),vc(e),$c(e)]:t.outputs.length===1?[Mc(e,t),...Ci(e,t),Sc(e)]:[Lc(e,t),Tc(e,t),...Ci(e,t).slice(0,1)],Ec(e)].filter(o=>o!==null)}var dt=e=>e.reduce((t,n,o)=>n>e[t]?o:t,0),Pi=(e,t)=>t.evidence==="attribution"?"attribution":e.picture&&!t.looksBack?e.picture.kind:e.hypotheses.length?"alignment":"heads";function xc(e,t){let n=t.outputs.flatMap(({shares:c,isWord:d},u)=>c.map((h,p)=>({output:u,input:p,share:h,rank:d&&t.areWords[p]?1+h:h})));if(!n.length)return null;let{output:o,input:r,share:s}=n[dt(n.map(c=>c.rank))];if(s<=0)return null;let i=t.looksBack?"it looks back at":"it reads",a=`The clearest link: to write ${V(t.outputs[o].label)} ${i} ${At(e,t,r)} (${Y(s)} of the attention).`,l={place:t.outputs[o].places[0],column:t.inputs[r].members[0],share:s};return{kind:"link",text:a,numbers:l,output:o,view:Pi(e,t)}}function yc({outputs:e}){let t=e.filter(({isWord:i})=>i),n=t.length?t:e;if(e.length<2)return null;let o=n[dt(n.map(i=>i.probability))],r=`Surest: ${V(o.label)} (${Y(o.probability)}).`,s={place:o.places[0],probability:o.probability};return{kind:"surest",text:r,numbers:s,output:e.indexOf(o)}}function kc(e,{outputs:t}){let n=e.sequences.target,o=t.flatMap(x=>x.places);if(!o.length)return[];let r=o[dt(o.map(x=>-(n[x].logprob??-1/0)))],[s,i]=[n[r],r-(e.next?.first??0)],a=Math.exp(s.logprob??-1/0),l=t.findIndex(x=>x.places.includes(r)),c=`${V(de(s))} (${Y(a)})`,d={output:l,view:e.sampling?"sampling":"search"},[u,h]=[e.next?.tokens[i],e.next?.probabilities[i]];if(!u||!h||u.length<2)return[{kind:"surprise",text:`Least sure token: ${c}.`,numbers:{place:r,probability:a},...d}];let p=u[0]===s.id,[f,b]=[u[+p],h[+p]],g=`${V(de(e.vocabulary[f]))} (${Y(b)})`;return[{kind:"surprise",text:p?`Least sure token: ${c}. It was still the first choice, before ${g}.`:`Most surprising token: ${c}. The model preferred ${g}.`,numbers:{place:r,probability:a,other:f,otherProbability:b},...d}]}function vc(e){let[t,n]=[Et(e),e.sequences.target];if(!e.next)return null;let o=e.next.tokens.map((c,d)=>c[0]===n[t+d]?.id),[r,s]=[o.filter(Boolean).length,o.length],i=s-r,a=e.sampling?"the dice decided":"the search gave them up for a likelier text";return{kind:"favorites",text:i===0?`Every token was the model's first choice${e.sampling?", although it was drawn at random":""}.`:`${i} of ${s} tokens ${i===1?"was":"were"} not the model's first choice: ${i===1&&!e.sampling?"the search gave it up for a likelier text":a}.`,numbers:{favorites:r,total:s},view:e.sampling?"sampling":"search"}}function $c(e){let{search:t}=e;if(!t||!(Number(t.settings.beam_size)>1))return null;let n=i=>t.total[i]??-1/0,o=i=>i===0?[]:[...o(t.parent[i]),t.token[i]],r=i=>V(we(o(i).map(a=>e.vocabulary[a]),60)||"…");for(let i=t.winner_step-1;i>=1;i--){let a=t.lineage[i],l=t.step.flatMap((x,L)=>x===i&&t.status[L]!=="finished"&&n(L)>n(a)?[L]:[]);if(!l.length)continue;let c=l.reduce((x,L)=>n(L)>n(x)?L:x),[d,u]=[Math.exp(n(a)),Math.exp(n(c))],h=i===1?"1 token":`${i} tokens`,[p,f]=[Y(u),Y(d)],b=p===f?`was just ahead of ${r(a)}`:`(${p}) was ahead of ${r(a)}`,g=`The search changed its mind: after ${h} ${r(c)} ${b} (${p===f?"both ":""}${f}).`,w={step:i,rank:l.length+1,probability:d,leaderProbability:u};return{kind:"beam",text:g,numbers:w,view:"search"}}return t.winner_step<2?null:{kind:"beam",text:"The search never changed its mind: the winner was ahead after every token.",numbers:{step:0},view:"search"}}function Di({bars:e,label:t,probability:n}){let o=`${V(t)} (${Y(n)})`;if(e.length<2)return{text:o,numbers:{probability:n}};let r=e[1].probability,s=n/r,i=s>=9.95?Math.round(s).toLocaleString("en"):s.toFixed(1);return{text:`${o}, ${i} times as probable as ${V(e[1].label)} (${Y(r)})`,numbers:{probability:n,second:r}}}function Mc(e,{outputs:[t]}){let{text:n,numbers:o}=Di(t),[r]=t.places,s=r!==void 0&&e.sequences.source?.[r]?.role==="special";return{kind:"decision",text:`${r===void 0?"It says":s?`In ${mt(e,r)} it puts`:`${mt(e,r)} is`} ${n}.`,numbers:o,output:0,view:"predictions"}}function Lc(e,{outputs:t}){let n=dt(t.map(l=>l.probability)),{label:o,places:r,probability:s,prediction:i}=t[n];return{kind:"surest",text:`Surest: ${mt(e,r[0])} is ${V(o)} (${Y(s)}).`,numbers:{prediction:i,probability:s},output:n,view:"predictions"}}function Tc(e,{outputs:t}){let n=dt(t.map(a=>-a.probability)),{text:o,numbers:r}=Di(t[n]);return{kind:"doubt",text:`Least sure: ${mt(e,t[n].places[0])} is ${o}.`,numbers:{prediction:t[n].prediction,...r},output:n,view:"predictions"}}function Ci(e,t){let n=Pi(e,t),o=t.outputs.flatMap(({shares:g},w)=>g.map((x,L)=>({output:w,input:L,share:x})));if(!o.length)return[];let r=({output:g,input:w,share:x})=>({output:g,view:n,numbers:{prediction:t.outputs[g].prediction,column:t.inputs[w].members[0],share:Math.abs(x)}}),s=o.map(g=>g.share),i=o[dt(s)],a=At(e,t,i.input),l=V(t.outputs[i.output].label);if(t.evidence==="attribution"){let g=o[dt(s.map(x=>-x))],w=(x,L,v)=>`${At(e,t,x)} speaks most ${v} ${l}: ${Y(Math.abs(L))} of the effect of all words.`;return[...i.share>0?[{kind:"for",text:w(i.input,i.share,"for"),...r(i)}]:[],...g.share<0?[{kind:"against",text:w(g.input,g.share,"against"),...r(g)}]:[]]}let c=t.inputs.length,d=e.picture?e.picture.kind==="image"?"patches":"time steps":"words",h=[...t.outputs[i.output].shares].sort((g,w)=>w-g),p=h.reduce((g,w)=>g+w,0)/2,[f,b]=[0,0];for(;f<c&&b<p;)b+=h[f++];return[{kind:"for",text:`For ${l} it reads ${a} most: ${Y(i.share)} of the attention.`,...r(i)},{kind:"half",text:`${f} of ${c} ${d} ${f===1?"holds":"hold"} half of the attention on them.`,numbers:{needed:f,count:c},output:i.output,view:n}]}function Sc(e){let[{position:t,probabilities:n}]=e.predictions;if(t!==null||n.length<2)return null;let o=n.reduce((i,a)=>a>0?i-a*Math.log(a):i,0),r=Math.exp(o);return{kind:"choices",text:`It is as uncertain as a fair choice among ${r.toFixed(1)} of ${n.length} labels.`,numbers:{choices:r},view:"predictions"}}function Ec(e){let t=Ke(e,e.attention);if(!t||!e.ablation)return null;let{baseline:n,output:o,texts:r}=e.ablation,{group:s,place:i,delta:a}=t,[l,c]=i,[d,u]=[Math.exp(n),Math.exp(n+a)],p={kind:"head",numbers:{group:e.attention.indexOf(s),layer:l,head:c,delta:a,before:d,after:u},view:"break"};if(a>=0)return{...p,text:`No single head is needed: without any one of them ${o} stays at least as probable.`};let f=`layer ${l+1}, head ${c+1} of the ${ve[s.name].toLowerCase()}`,b=Number(Math.exp(-a).toPrecision(2)),g=b<1e9?b.toLocaleString("en"):b.toExponential(0),[w,x]=[Y(d),Y(u)];if(d>=.001?w===x:b<1.05)return{...p,text:`No single head matters much: without any one of them ${o} stays about as probable.`};let L=d>=.001?`the probability of ${o} falls from ${w} to ${x}`:`${o} is ${g} times less probable`,v=r[`${s.name}.${l}.${c}`],A=v!==void 0&&v!==e.output,M=A?Q(v.trim(),80)||"nothing":"",T=A?`, and it writes ${V(M)}`:"",k=/[.!?…]$/.test(M)?"":".";return{...p,text:`The head that matters most: ${f}. Without it ${L}${T}${k}`}}var No=1240,Ac=160,Ct=25,Wo=9,pt=26,Fi=70;function Hi(e,t,n,o,r,s,i){let[a,l]=[n,o],c=e.map(d=>{let u=Math.max(t,Math.min(r,ge(d,t,i)*1.1+t*.6));a>n&&a+u>n+r&&([a,l]=[n,l+s]);let h={x:a,y:l,width:u,height:t*1.6};return a+=u+t*.4,h});return{boxes:c,bottom:c.length?l+t*1.6:o}}function Cc(e,t,n,o){if(t<700)return 17;let r=s=>e.every(i=>i.length<=40&&i.reduce((a,l)=>a+ge(l.label,s,o)*1.1+s,0)<=n);return(t>=No?[36,30,26,22]:[28,24,20]).find(r)??(t>=No?22:20)}function Uo(e,t,n,o,r){let s=o>=760,i=s?Math.min(460,o*.34):Math.min(420,o-4),a=s?o-i-48:o-4,l=e.picture!==void 0&&!t.looksBack,c=[l?[]:t.inputs,t.outputs],d=Cc(c,o,a,r.font),u=[],h=[],p=null,f=0,b=t.inputs.length>0;if(b&&u.push([t.looksBack?"It looks back at":"It reads",2,10]),l&&n){let $=e.picture;p=$.kind==="image"?Dn($,n.shape,Math.min(o>=No?520:360,a)):Pn($,n.shape,a);let{kind:S}=$;p={...p,picture:{...p.picture,x:S==="image"?2:46,y:pt}},h=t.inputs.map((E,I)=>St($,p,p.picture,I)),f=pt+p.picture.height}else if(b&&!l){let $=Math.max(0,t.inputs.length-Ac),S=t.inputs.slice($).map(I=>I.label),E=Hi(S,d,2,pt,a,d*2,r.font);h=[...Array($).fill(null),...E.boxes],f=E.bottom}let g=b?56:0;u.push([t.isWritten?"It writes":"It decides",2,f+g+10]);let w=t.outputs.map($=>$.label),x=Hi(w,d,2,f+g+pt,a,d*2.6,r.font);f=x.bottom+d*1.1;let L=Math.min(Wo,Math.max(1,...t.outputs.map($=>$.bars.length))),v=pt+L*Ct+22,A=[...p?[p.picture]:h,...x.boxes],M=Math.max(...A.map($=>$?$.x+$.width:0)),T=s?{x:Math.min(a,Math.max(M,420))+44,y:0,width:i,height:v}:{x:2,y:f+20,width:i,height:v},k=Math.max(f,T.y+T.height)+6;return{size:d,inputs:h,outputs:x.boxes,bars:T,headings:u,picture:p,width:o,height:k}}function In(e,t,n,o,r,s,i,a=1){let l=n.outputs[o.output];Rc(e,t,n,o,r,s,i);let c=s.outputs[o.output];for(let d of o.inputs){let u=s.inputs[d];if(!u)continue;let h=l.shares[d],p=s.picture?[u.x+u.width/2,u.y+u.height/2]:[u.x+u.width/2,u.y+u.height],f=vn(p,[c.x+c.width/2,c.y]),b={stroke:h>0?s.picture?i.tint:i.hue:i.minus},g=Math.abs(h)*a;e.path(f,{...b,width:1+13*g,opacity:.15+.55*g})}for(let[d,u,h]of s.headings)e.text(u,h,d,{fill:i.muted,size:13});Dc(e,n,o,s,i),o.isWritten&&Fc(e,n,o,s,i,a)}function Rc(e,t,n,o,r,s,i){let{shares:a,places:l}=n.outputs[o.output];if(s.picture&&r){let c=Float32Array.from(n.inputs,(u,h)=>o.isWritten||o.inputs.includes(h)?Math.max(0,a[h]??0):0),d=Math.max(1e-9,...a);Xt(e,t.picture,r,c,d,s.picture,i),t.picture.kind==="spectrogram"&&Pc(e,n,o,a,s,i);return}n.inputs.forEach(({label:c,members:d},u)=>{let h=s.inputs[u];if(!h||n.looksBack&&d[0]>=l[0])return;let p=o.inputs.includes(u)?a[u]??0:0;if(p!==0){let f=p>0?i.hue:i.minus;e.rect(h.x,h.y,h.width,h.height,{fill:f,opacity:.1+.35*Math.abs(p),radius:6})}_i(e,c,h,s.size,i,{fill:i.ink,weight:p!==0?600:400})})}function Pc(e,t,n,o,r,s){let i=o.reduce((h,p,f)=>p>o[h]?f:h,0),a=n.isWritten?i:n.inputs[n.inputs.length-1],l=r.inputs[a??0];if(!l||!o.length)return;let c=l.x+l.width/2;e.path(`M${c} ${l.y-4}v${l.height+8}`,{stroke:s.accent,width:2});let d=c<Fi+20?"start":c>r.picture.picture.width?"end":"middle",u=d==="start"?Math.max(c,Fi):c;e.text(u,l.y-12,t.inputs[a].label,{fill:s.accent,size:12,anchor:d})}function Dc(e,t,n,o,r){t.outputs.forEach(({label:s,probability:i},a)=>{let l=o.outputs[a],c=l.y+l.height,d=a===n.output;if(a>n.output||d&&!n.isWritten){e.path(`M${l.x+4} ${c-4}h${l.width-8}`,{stroke:r.rule,width:2});return}let u=.04+.4*i;e.rect(l.x,l.y,l.width,l.height,{fill:r.hue,opacity:u,radius:6}),d&&e.rect(l.x,l.y,l.width,l.height,{stroke:r.accent,width:2,radius:6}),_i(e,s,l,o.size,r,{fill:r.ink,weight:d?600:400});let h=Y(i);(d||ge(h,12,r.font)<=l.width+4)&&e.text(l.x+l.width/2,c+10,h,{fill:r.muted,size:12,anchor:"middle"})})}function Fc(e,t,n,o,r,s){let{bars:i,tokens:a}=t.outputs[n.output],{x:l,y:c,width:d}=o.bars,u=Math.min(150,d*.36),h=d-u-74,p=t.isWritten?"What could come next":"What it could be";if(e.text(l,c+10,p,{fill:r.muted,size:13}),i.slice(0,Wo).forEach((w,x)=>{let L=c+pt+x*Ct+Ct/2,v=w.isChosen?700:400;w.isChosen&&e.rect(l,L-Ct/2+1,d,Ct-2,{fill:r.hue,opacity:.14,radius:4});let A=me(w.label,15,r.font,u-12);e.text(l+u-8,L,A,{fill:r.ink,size:15,weight:v,anchor:"end"});let M=Math.max(1.5,h*w.probability*s);e.rect(l+u,L-7,M,14,{fill:r.hue}),e.text(l+u+M+7,L,Y(w.probability),{fill:r.ink,size:13,weight:v})}),a.length<2)return;let f=a.map(w=>`${w.label} ${Y(w.probability)}`).join(" · "),b=c+pt+Math.min(Wo,i.length)*Ct+12,g=me(`Its ${a.length} tokens: ${f}`,13,r.font,d);e.text(l,b,g,{fill:r.muted,size:13})}function _i(e,t,n,o,r,s){let i=me(t,o,r.font,n.width);e.text(n.x+n.width/2,n.y+n.height/2,i,{...s,size:o,anchor:"middle"})}var Hc=700,_c=1400,Oc=1e3,Ic=260,Bi={name:"story",title:"Story",applies:Li,mount:Bc},Go=!1,Oi=()=>matchMedia("(prefers-reduced-motion: reduce)").matches;function Bc({doc:e,store:t,blobs:n}){let o=Bo(e,U=>n.read(U)),r=m("p",{class:"fact caption",role:"status"}),s=new ce("The story. Arrow keys step, Space plays and pauses, Home and End go to the ends."),i=m("span",{class:"small count"}),a=m("button",{type:"button","aria-label":"Back",onclick:()=>F(-1)},"◀"),l=m("button",{type:"button","aria-label":"Next",onclick:()=>F(1)},"▶|"),c=m("button",{type:"button",class:"play",onclick:()=>R()}),d=[.5,1].map(U=>m("button",{type:"button",onclick:()=>B(U)},`${U}×`)),u=m("div",{class:"strip",role:"group","aria-label":"The model"}),h=m("ul",{class:"findings"}),p=m("ol"),f=rn(J),b=m("div",{class:"controls"},m("div",{class:"player"},a,c,l),m("div",{class:"choice",role:"group","aria-label":"Speed"},...d),i,he(()=>`story.${E()+1}`,()=>L,(U,ne)=>L&&In(U,e,o,o.steps[E()],$(),L,ne)),f),g=m("div",{class:"telling"},b,r,m("div",{class:"scroller"},s.element)),w=e.picture?.kind==="image"&&!o.looksBack,x=m("section",{class:w?"story small-picture":"story","aria-label":"Story"},g,m("div",{class:"aside"},u,m("h2",{},"What happened"),h),m("details",{class:"transcript"},m("summary",{},"Transcript"),p),m("p",{class:"small"},`Darker words: the model was surer. ${Wc(o)}`)),L=null,[v,A,M]=[1,!1,!1],T,k=0,$=()=>e.picture?n.read(e.picture.pixels):void 0,S=()=>o.steps.length-1,E=()=>Math.min(t.state.beat??S(),S()),I=U=>t.set({beat:U>=S()?null:Math.max(0,U)}),F=U=>{y(),I(E()+U)};function D(){if(clearTimeout(T),!A||!x.isConnected)return y();T=setTimeout(()=>{I(E()+1),E()>=S()?y():D()},Hc/v)}function y(){clearTimeout(T),A=M=!1,P()}function C(){A=!0,E()>=S()&&I(0),P(),D()}let R=()=>A?y():C(),B=U=>{v=U,P(),A&&D()};function P(){c.textContent=A?"Pause":"Play",d.forEach((U,ne)=>U.setAttribute("aria-pressed",String([.5,1][ne]===v))),i.textContent=`Step ${E()+1} of ${o.steps.length}`,a.disabled=E()<=0,l.disabled=E()>=S()}let _=U=>{if(!x.isConnected)return document.removeEventListener("keydown",_);let ne=U.target;if(!(ne===document.body||x.contains(ne))||U.ctrlKey||U.metaKey||U.altKey||U.key===" "&&ne.closest("button, summary, a"))return;let pe={ArrowRight:()=>F(1),ArrowLeft:()=>F(-1),Home:()=>F(-1/0),End:()=>F(1/0)," ":R};Object.hasOwn(pe,U.key)&&(U.preventDefault(),pe[U.key]())};document.addEventListener("keydown",_);function N(U){if(U.size===0){o=Bo(e,pe=>n.read(pe));let ue=Ri(e,o);j(h,...ue.map(O)),j(p,...o.steps.map(pe=>m("li",{},pe.text))),L=Uo(e,o,$(),Math.max(260,g.clientWidth-4),ae())}else if(!U.has("beat"))return;P(),f.hidden=o.steps.length<2;let ne=o.steps[E()];r.textContent=ne.text,j(u,...z()),cancelAnimationFrame(k),U.has("beat")&&!Oi()?K(performance.now()):G(1),Go||(Go=M=t.state.beat===null&&!Oi()&&o.steps.length>1,Go=!0),M&&o.outputs[0].shares.length>0&&(M=!1,C())}function K(U){let ne=Math.min(1,(performance.now()-U)/Ic);G(1-(1-ne)**3),ne<1&&(k=requestAnimationFrame(()=>K(U)))}function G(U){let ne=L,ue=o.steps[E()];s.draw(ne.width,ne.height,(pe,De)=>In(pe,e,o,ue,$(),ne,De,U))}function J(){let[U,ne]=[o,$()],ue=Uo(e,U,ne,Oc,ae());return{name:"story",caption:qn(),width:ue.bars.x+ue.bars.width,height:ue.height,count:U.steps.length,delay:_c,draw:(pe,De,ht)=>In(De,e,U,U.steps[pe],ne,ue,ht),tell:pe=>U.steps[pe].text}}function O(U){let ne=o.steps.findIndex(({output:pe,isWritten:De})=>pe===U.output&&De),ue=[U.output!==void 0&&o.outputs.length>1?m("button",{type:"button",onclick:()=>(y(),I(ne))},"Show"):null,U.view&&re(U.view)?m("button",{type:"button",onclick:()=>W(U.view)},"Details"):null];return m("li",{"data-kind":U.kind},m("span",{dir:"auto"},U.text),...ue)}function W(U){let ne=U==="break"?Ke(e,e.attention):null,ue=ne?[[ne.group.name,...ne.place].join(".")]:t.state.headsOff;t.set({view:U,hover:null,locked:null,headsOff:ue})}function z(){let{width:U,layers:ne,vocabulary:ue}=e.model,pe=o.outputs[o.steps[E()].output],De=Et(e),ht=Object.entries(ne).map(([te,ee])=>{let le=e.attention.find(({name:Oe})=>Oe===`${te}.cross`)??e.attention.find(({name:Oe})=>Oe===`${te}.self`),ye=te==="encoder"?e.sequences.source?.length??0:pe.places[0]??De,$e=`${ee} ${ee===1?"layer":"layers"}`;return Ii(te,`${ye} × ${U}`,$e,le?()=>oe(le):null)}),H=e.predictions[0],q=H?.position!=null&&e.sequences.source?.[H.position]?.role==="special",X=o.isWritten||q?ue.target??ue.source:H?.labels.length,Z=["predictions","sampling","search"].find(re),se=o.isWritten||q?"tokens":"labels";return ht.push(Ii("softmax",(X??0).toLocaleString("en"),se,Z?()=>W(Z):null)),ht.flatMap((te,ee)=>ee>0?[m("span",{"aria-hidden":"true"},"→"),te]:[te])}function oe(U){let ne=e.picture&&U.columns==="source"?e.picture.kind:"heads",[ue,pe]=U.default_head;t.set({view:ne,group:U.name,layer:ue,head:pe,query:null,hover:null,locked:null})}let re=U=>Nc[U]?.(e)??e.attention.length>0;return{element:x,update:N}}var Nc={search:e=>e.search!==null&&e.search.step.length>1,sampling:e=>(e.sampling?.steps.length??0)>0,predictions:e=>e.predictions.length>0,ablation:e=>e.ablation!==null,attribution:e=>e.attribution!==null};function Wc({evidence:e,outputs:t}){let n=t.length===Zt?` The story has the first ${Zt} words.`:"";return e==="attribution"?`Ribbons show how much a word raises (blue) or lowers (purple) the result, by integrated gradients.${n}`:`Ribbons show attention: where the model looked, not why it decided.${n}`}function Ii(e,t,n,o){let r=[m("b",{},e),m("span",{},t),m("span",{class:"small"},n)];return o?m("button",{type:"button",onclick:o},...r):m("div",{},...r)}var Uc=[Gs,Bi,ii,ai,ci,Ps,ks,Yr,Mi,ui,us,hs,pi,vi,xi],zo=null;function Ni(e,t){zo?.abort(),zo=new AbortController;let{signal:n}=zo;Bn(e);let o=Uc.filter(M=>M.applies(e)),r=o.map(M=>M.name),s=Jr(e,r[0]??""),i=new wn(so(location.hash,s,e,r)),a=new ke(M=>e.blobs[M]?Be(e.blobs[M]):Promise.reject(new Error(`No blob ${M}.`)),()=>i.notify()),l={doc:e,store:i,blobs:a,live:new vt(e)},c=e.session&&l.live.available?Xo(e,l.live,M=>Gc(M,t)):null,d=rs(o,M=>i.set({view:M,hover:null,locked:null})),u=m("div",{id:"panel",role:"tabpanel","aria-labelledby":`tab-${i.state.view}`}),h=nr(i,n),p=es(()=>ro(i.state,s)),f=m("div",{class:"tools"},h,...p.elements);j(t,zc(e,f,c,l.live),m("main",{},...d.elements,u,qc(e)));let b=null,g="",w=M=>{let{view:T}=i.state;T!==g&&(g=T,b=o.find(k=>k.name===T)?.mount(l)??null,j(u,b?.element??m("p",{},"This document has nothing to show.")),u.setAttribute("aria-labelledby",`tab-${T}`),d.mark(T),p.clear(),M=new Set),b?.update(M)};i.subscribe(w),w(new Set);let x=Jt(`#${s.view}`,()=>ro(i.state,s),M=>i.set({...so(M,s,e,r),hover:null}),n);i.subscribe(M=>x.changed(M.has("view")));let L=()=>i.notify(),v=window.innerWidth,A=()=>{window.innerWidth!==v&&(v=window.innerWidth,L())};window.addEventListener("resize",A,{signal:n}),matchMedia("(prefers-color-scheme: dark)").addEventListener("change",L,{signal:n})}function Gc(e,t){e.against&&!location.hash.startsWith("#compare")&&history.pushState(null,"","#compare"),document.title=`${[e.text,e.output].flatMap(n=>n?[Q(n,60)]:[]).join(" → ")} · Regard`,Ni(e,t),t.querySelector(".box textarea")?.focus()}function zc(e,t,n,o){let{model:r}=e,s=Q(et(e),160),i=e.session?.blame&&o.available&&s===e.output,[a,l]=i?Ko(s,p=>o.blame(p)):[m("bdi",{},s),null],c=Object.entries(r.layers).map(([p,f])=>`${f} ${p} ${f===1?"layer":"layers"}`),d=r.parameters>0?`${r.parameters.toLocaleString("en")} parameters`:"",u=[r.name,d,...c].filter(Boolean),h=Ur(e);return m("header",{},m("div",{},n,e.output?m("p",{class:"input",dir:"auto",hidden:n!==null},Q(e.text,240)):null,m("h1",{},a,h?m("span",{class:"sure",title:h.title},` ${h.text}`):null),l,m("p",{class:"small"},Q(u.join(" · "))),...e.notes.map(p=>m("p",{class:"note"},Q(p)))),t)}function qc(e){let t=Gr(e);return m("footer",{class:"small"},m("p",{},`Made with Regard ${e.model.regard}`,t?": ":".",t?m("code",{dir:"auto"},Q(t)):null))}document.head.append(m("style",{},ns+ts));var jc=document.getElementById("document"),qo=document.getElementById("app")??document.body.appendChild(m("div",{id:"app"}));try{let e=JSON.parse(jc?.textContent??"");Qo(e)?Fr(e,qo):Ni(e,qo)}catch(e){throw j(qo,m("p",{role:"alert"},`This page cannot be shown: ${e instanceof Error?e.message:e}`)),e}})();
